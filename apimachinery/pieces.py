"""Sorting, encoding and release of what a client sent, in pieces: there may be a million items, and during a single call of a function
that is not written in Python no other thread runs.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import pairwise
from typing import Any, Final, TypeVar

import orjson

PIECE: Final = 4096
"""Items for one call: a few milliseconds, whatever they are."""
ENCODED_PIECE: Final = 256
"""Items of a list for one call that encodes them: they may have as many fields as a container."""

_T = TypeVar("_T", bound=Any)
_V = TypeVar("_V")


def sorted_in_pieces(items: Collection[_T], key: Callable[[_T], Any] | None = None) -> list[_T]:
    """The same as `sorted`; many items piece by piece, which are merged item by item."""
    if len(items) <= PIECE:
        return sorted(items, key=key)
    if key is None:
        return _merge_pieces([*items])
    keyed = [(key(item), place, item) for place, item in enumerate(items)]
    merged = _merge_pieces(keyed)
    ordered = [item for _, _, item in merged]
    release(keyed)
    release(merged)
    return ordered


def sorted_items(mapping: Mapping[str, _V]) -> Iterable[tuple[str, _V]]:
    """The items of a mapping in the order of its keys; many of them one after another."""
    return sorted(mapping.items()) if len(mapping) <= PIECE else _items_in_order(mapping)


def _items_in_order(mapping: Mapping[str, _V]) -> Iterator[tuple[str, _V]]:
    for key in sorted_in_pieces(mapping.keys()):
        yield key, mapping[key]


def _merge_pieces(items: Sequence[_T]) -> list[_T]:
    sorted_pieces = [sorted(items[start : start + PIECE]) for start in range(0, len(items), PIECE)]
    if all(before[-1] <= after[0] for before, after in pairwise(sorted_pieces)):
        return [item for piece in sorted_pieces for item in piece]
    return [*merge(*sorted_pieces)]


def release(items: list[Any]) -> None:
    """Empty a list without other references: its items are freed piece by piece."""
    while items:
        del items[-PIECE:]


def with_encoded_lists(value: Any, option: int | None = None) -> Any:
    """Return an equal value for `orjson.dumps`, in which long lists are encoded already, piece by piece."""
    if isinstance(value, dict):
        return {key: with_encoded_lists(item, option) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) <= ENCODED_PIECE:
        return [with_encoded_lists(item, option) for item in value]
    # A fragment of several items is written into the list as it is. To join the fragments would copy a large text twice.
    starts = range(0, len(value), ENCODED_PIECE)
    texts = (orjson.dumps(value[start : start + ENCODED_PIECE], option=option)[1:-1] for start in starts)
    return [*map(orjson.Fragment, texts)]
