"""Sorting, encoding and release of what a client sent, in pieces: there may be a million items, and during a single call of a function
that is not written in Python no other thread runs.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import pairwise
from typing import Any, Final, TypeVar

import orjson

PIECE: Final = 4096
"""Items for one call: a few milliseconds, whatever they are."""
LARGE: Final = 256 * 1024
"""Bytes of a value that is encoded in pieces."""
ENCODED_PIECE: Final = 256
"""Items of a list or an object for one call that encodes them: they may have as many fields as a container."""

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


def encoder(size: int) -> Callable[..., bytes]:
    """Return the function that encodes a value which a client sent in `size` bytes; with defaults it may be ten times as long."""
    return orjson.dumps if size < LARGE else encode


def encode(value: Any, option: int | None = None, depth: int = sys.maxsize) -> bytes:
    """Return the same as `orjson.dumps`, encoded in pieces; what is nested deeper than `depth` is not divided.

    The buffer of `orjson.dumps` grows by copies: to encode 20 MB in one call takes 60 ms, most of it in the kernel.
    """
    texts: list[bytes] = []
    _encode(value, option, depth, texts.append)
    return b"".join(texts)


def _encode(value: Any, option: int | None, depth: int, write: Callable[[bytes], object]) -> None:
    if not depth or not value or not isinstance(value, dict | list):
        write(orjson.dumps(value, option=option))
    elif len(value) > ENCODED_PIECE:
        _encode_long(value, option, write)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            write(b"," if index else b"[")
            _encode(item, option, depth - 1, write)
        write(b"]")
    else:
        mark = b"{"
        for key, item in _members(value, option):
            write(mark + orjson.dumps({key: 0})[1:-2])
            _encode(item, option, depth - 1, write)
            mark = b","
        write(b"}")


def _encode_long(value: Any, option: int | None, write: Callable[[bytes], object]) -> None:
    make, items = (list, value) if isinstance(value, list) else (dict, [*_members(value, option)])
    starts = range(0, len(items), ENCODED_PIECE)
    texts = (orjson.dumps(make(items[start : start + ENCODED_PIECE]), option=option) for start in starts)
    write(next(texts)[:-1])
    for text in texts:
        write(b"," + text[1:-1])
    write(b"]" if make is list else b"}")


def _members(value: Mapping[str, Any], option: int | None) -> Iterable[tuple[str, Any]]:
    return sorted_items(value) if option == orjson.OPT_SORT_KEYS else value.items()
