"""JSON decoding as by orjson, but in several short calls: a text can have a million objects, and no other thread runs
during a call of orjson.
"""

import re
from typing import Any, Final

import orjson

MAX_CONTAINERS_PER_CALL: Final = 1 << 14
"""The maximum number of objects and arrays for one call of orjson, which takes about 2 milliseconds."""

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


def decode(text: bytes) -> Any:
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
