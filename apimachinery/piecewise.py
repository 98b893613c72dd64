"""Sorting, release, and JSON encoding and decoding of large values in pieces.

A client can send a million items, and no other thread runs during one call of a function that is not written in Python.
"""

import re
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
MAX_CONTAINERS_PER_CALL: Final = 1 << 14
"""The maximum number of objects and arrays for one call of orjson, which takes about 2 milliseconds."""

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


# --- encoding


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


# --- decoding

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_UNTERMINATED: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?\Z'
_BRACKETS: Final = re.compile(
    rb'(?:[^"\[\]{}]++|%b){0,4096}+(\[[ \t\n\r]*+\]|\{[ \t\n\r]*+\}|[\[\]{}]|%b)?+'
    % (_STRING, _UNTERMINATED),
    re.DOTALL,
)
"""The text before a bracket that is not in a string, and the bracket itself; an empty object or array, and a string
without an end, match as one bracket.
"""
_STRINGS: Final = re.compile(rb'(?:[^"]*+(%b))++' % _STRING, re.DOTALL)
_COMMA: Final = re.compile(rb"[ \t\n\r]*+,")
_BLANKS: Final = b" \t\n\r"
_ARRAY, _OBJECT, _QUOTE = b'[{"'
_CLOSING: Final = {ord("]"): _ARRAY, ord("}"): _OBJECT}


def decode_in_pieces(text: bytes) -> Any:
    """Decode as `orjson.loads` does, but a text with many objects and arrays in pieces."""
    if text.count(b"{") + text.count(b"[") <= MAX_CONTAINERS_PER_CALL:
        return orjson.loads(text)
    return _PiecewiseDecoder(text).result()


class _Container:
    """An object or array whose end the decoder has not reached."""

    __slots__ = ("after_decoded", "bracket", "count", "decoded", "opening", "start")

    def __init__(self, bracket: int, opening: int) -> None:
        self.bracket = bracket
        self.opening = opening
        self.start = opening + 1
        """The start of the members that are not decoded yet."""
        self.count = 0
        """The number of objects and arrays in these members."""
        self.decoded: Any = None
        """The decoded members; None if none are decoded."""
        self.after_decoded = False
        """Whether `start` is directly after a decoded member, before its comma."""


class _PiecewiseDecoder:
    """A decoder for one text. A container is decoded in pieces if it contains many others."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._open = [_Container(_ARRAY, -1)]
        """The containers that are open. The first stands for the document: the text is treated as the member of an array."""

    def result(self) -> Any:
        for match in _BRACKETS.finditer(self._text):
            start, end = match.span(1)
            if start < 0:
                continue
            if self._text[start] == _QUOTE:
                raise _decode_error("a string does not end")
            if end > start + 1:
                self._count(1, end)
            elif self._text[start] in _CLOSING:
                self._close(start)
            else:
                self._open.append(_Container(self._text[start], start))
        document = self._open.pop()
        if self._open:
            raise _decode_error("a bracket is not closed")
        if document.decoded is None:
            return orjson.loads(self._text)
        self._require_blank(document, len(self._text))
        return document.decoded[0]

    def _count(self, count: int, end: int) -> None:
        """Add the containers of a complete member to the count; decode the members so far if there are many."""
        container = self._open[-1]
        container.count += count
        if container.count >= MAX_CONTAINERS_PER_CALL and (comma := _COMMA.match(self._text, end)):
            self._decode_members(container, comma.end() - 1)
            container.start, container.count = comma.end(), 0

    def _close(self, end: int) -> None:
        """Close the innermost container, whose closing bracket is at `end`."""
        container = self._open.pop()
        if not self._open or container.bracket != _CLOSING[self._text[end]]:
            raise _decode_error("a bracket closes nothing")
        if container.decoded is None and container.count < MAX_CONTAINERS_PER_CALL:
            self._count(container.count + 1, end + 1)
            return
        if container.decoded is None:
            container.decoded = orjson.loads(self._text[container.opening : end + 1])
        elif container.after_decoded:
            self._require_blank(container, end)
        else:
            self._decode_members(container, end)
        self._add(container, end + 1)

    def _decode_members(self, container: _Container, end: int) -> None:
        """Decode the members from `start` to a comma or the end; at least one is required."""
        members = self._text[container.start : end]
        if container.opening < 0 or container.after_decoded or not members.strip(_BLANKS):
            raise _decode_error("a comma is wrong")
        _extend(container, orjson.loads((b"[%b]" if container.bracket == _ARRAY else b"{%b}") % members))

    def _add(self, container: _Container, end: int) -> None:
        """Add a decoded container to the enclosing one, after the members before it."""
        outer = self._open[-1]
        before = self._text[outer.start : container.opening]
        comma = _COMMA.match(self._text, end)
        if outer.after_decoded or (comma and outer.opening < 0):
            raise _decode_error("there is more than one value")
        if outer.bracket == _ARRAY:
            members = orjson.loads(b"[%bnull]" % before)
            members[-1] = container.decoded
        else:
            members = orjson.loads(b"{%bnull}" % before)
            strings = _STRINGS.match(before)
            assert strings, "an object with a member has a key"
            members[orjson.loads(strings[1])] = container.decoded
        _extend(outer, members)
        outer.start, outer.count, outer.after_decoded = comma.end() if comma else end, 0, not comma

    def _require_blank(self, container: _Container, end: int) -> None:
        if self._text[container.start : end].strip(_BLANKS):
            raise _decode_error("a comma is missing")


def _extend(container: _Container, members: Any) -> None:
    if container.decoded is None:
        container.decoded = members
    elif container.bracket == _ARRAY:
        container.decoded += members
    else:
        container.decoded.update(members)


def _decode_error(message: str) -> orjson.JSONDecodeError:
    return orjson.JSONDecodeError(message, "", 0)
