"""Sorting, JSON encoding and release of large values in pieces.

A client can send a million items, and no other thread runs during one call of a function that is not written in Python.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import pairwise
from typing import Any, Final, TypeVar

import orjson

PIECE_SIZE: Final = 4096
"""The number of items per call, which takes a few milliseconds for any items."""
MIN_BYTES_IN_PIECES: Final = 256 * 1024
"""The size from which on values are encoded in pieces."""
ENCODED_PIECE_SIZE: Final = 256
"""The number of encoded items per call: an item can have as many fields as a container."""

_T = TypeVar("_T", bound=Any)
_V = TypeVar("_V")


def sorted_in_pieces(items: Collection[_T], key: Callable[[_T], Any] | None = None) -> list[_T]:
    """Sort as `sorted` does, but many items in pieces, which are then merged item by item."""
    if len(items) <= PIECE_SIZE:
        return sorted(items, key=key)
    if key is None:
        return _merge_pieces([*items])
    keyed = [(key(item), position, item) for position, item in enumerate(items)]
    merged = _merge_pieces(keyed)
    ordered = [item for _, _, item in merged]
    release_in_pieces(keyed)
    release_in_pieces(merged)
    return ordered


def sorted_items(mapping: Mapping[str, _V]) -> Iterable[tuple[str, _V]]:
    """Return the items of a mapping, sorted by key; the items of a large mapping are yielded one by one."""
    return sorted(mapping.items()) if len(mapping) <= PIECE_SIZE else _items_in_order(mapping)


def _items_in_order(mapping: Mapping[str, _V]) -> Iterator[tuple[str, _V]]:
    for key in sorted_in_pieces(mapping.keys()):
        yield key, mapping[key]


def _merge_pieces(items: Sequence[_T]) -> list[_T]:
    sorted_pieces = [sorted(items[start : start + PIECE_SIZE]) for start in range(0, len(items), PIECE_SIZE)]
    if all(before[-1] <= after[0] for before, after in pairwise(sorted_pieces)):
        return [item for piece in sorted_pieces for item in piece]
    return [*merge(*sorted_pieces)]


def release_in_pieces(items: list[Any]) -> None:
    """Empty a list, so that its items are freed in pieces. There must be no other reference to the list."""
    while items:
        del items[-PIECE_SIZE:]


def encoder_for_size(size: int) -> Callable[..., bytes]:
    """Return the encoder for a value that a client sent in `size` bytes; with its defaults it can be ten times as long."""
    return orjson.dumps if size < MIN_BYTES_IN_PIECES else encode_in_pieces


def encode_in_pieces(value: Any, option: int | None = None, depth: int = sys.maxsize) -> bytes:
    """Encode as `orjson.dumps` does, but in pieces. Values nested deeper than `depth` are not divided.

    The buffer of `orjson.dumps` grows by copies: to encode 20 MB in one call takes 60 ms, most of it in the kernel.
    """
    texts: list[bytes] = []
    _encode(value, option, depth, texts.append)
    return b"".join(texts)


def _encode(value: Any, option: int | None, depth: int, write: Callable[[bytes], object]) -> None:
    if not depth or not value or not isinstance(value, dict | list):
        write(orjson.dumps(value, option=option))
    elif len(value) > ENCODED_PIECE_SIZE:
        _encode_long(value, option, write)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            write(b"," if index else b"[")
            _encode(item, option, depth - 1, write)
        write(b"]")
    else:
        separator = b"{"
        for key, item in _members(value, option):
            write(separator + orjson.dumps({key: 0})[1:-2])
            _encode(item, option, depth - 1, write)
            separator = b","
        write(b"}")


def _encode_long(value: Any, option: int | None, write: Callable[[bytes], object]) -> None:
    container_class, items = (list, value) if isinstance(value, list) else (dict, [*_members(value, option)])
    starts = range(0, len(items), ENCODED_PIECE_SIZE)
    texts = (
        orjson.dumps(container_class(items[start : start + ENCODED_PIECE_SIZE]), option=option)
        for start in starts
    )
    write(next(texts)[:-1])
    for text in texts:
        write(b"," + text[1:-1])
    write(b"]" if container_class is list else b"}")


def _members(value: Mapping[str, Any], option: int | None) -> Iterable[tuple[str, Any]]:
    return sorted_items(value) if option == orjson.OPT_SORT_KEYS else value.items()
