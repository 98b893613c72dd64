"""The syntax errors of Go's JSON decoder, for texts that orjson refuses.

Go accepts invalid UTF-8 and lone surrogates, which orjson refuses: `replace_invalid_characters` makes such texts valid.
"""

import json  # noqa: TID251 - orjson does not say which number is too large
import math
import re
from typing import Any

import orjson

from mockube.apimachinery import gotext

END = "unexpected end of JSON input"

_SPACE = re.compile(rb"[ \t\r\n]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_HEX = re.compile(rb"[0-9a-fA-F]")
_DIGITS_IN_64_BITS = 20
_DIGITS = re.compile(rb"[0-9]*")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""An escape in a text; the group is a surrogate without its other half."""


class _SyntaxFault(Exception):
    """The first syntax error."""


def syntax_error(text: bytes) -> str:
    """Return the first syntax error of a text; "" if Go accepts it."""
    try:
        _Scanner(text).scan()
    except _SyntaxFault as fault:
        return str(fault)
    return ""


_TYPE_NAMES = ((bool, "bool"), (str, "string"), (list, "array"), (dict, "object"))


def type_name(value: object) -> str:
    """Return Go's name of the type of a value."""
    json_type = next((name for cls, name in _TYPE_NAMES if isinstance(value, cls)), "number")
    return f"number {value}" if isinstance(value, float) else json_type


class NumberOutOfRange(ValueError):
    """A number is larger than the largest float64."""


def replace_invalid_characters(text: bytes) -> bytes:
    """Return a text without syntax errors with U+FFFD for each invalid byte and each lone surrogate."""
    valid = gotext.decode_utf8(text).encode()
    return _ESCAPE.sub(_replace_lone, valid) if _SURROGATE.search(valid) else valid


def _replace_lone(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape[1] is None else rb"\ufffd"


def decode(text: bytes) -> Any:
    """Decode a text without syntax errors and invalid characters."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # a number that is too large
        return json.loads(text, parse_int=_parse_int, parse_float=_fraction)


def _parse_int(text: str) -> int | float:
    """Parse an integer as orjson does: one of more than 64 bits becomes a float."""
    if len(text) <= _DIGITS_IN_64_BITS and -(2**63) <= int(text) < 2**64:
        return int(text)
    return _fraction(text)


def _fraction(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NumberOutOfRange(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


class _Scanner:
    """A position in a text, with the objects and lists that contain it."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._position = 0
        self._open: list[bytes] = []
        self._is_first = False
        """Whether the innermost object or list has just begun."""

    def scan(self) -> None:
        self._value()
        while self._open:
            if self._is_first:
                self._first()
            elif self._open[-1] == b"{":
                self._member()
            else:
                self._element()
        self._space()
        if self._position < len(self._text):
            self._refuse("after top-level value")

    def _value(self) -> None:
        """Scan a scalar, or the beginning of an object or list."""
        self._space()
        first = self._peek()
        if first in (b"{", b"["):
            self._position += 1
            self._open.append(first)
            self._is_first = True
        elif first == b'"':
            self._string()
        elif first in _LITERALS:
            self._literal(_LITERALS[first])
        elif first == b"-" or first.isdigit():
            self._number()
        else:
            self._refuse("looking for beginning of value")

    def _first(self) -> None:
        self._is_first = False
        self._space()
        if self._open[-1] == b"[":
            if self._peek() == b"]":
                self._close()
            else:
                self._value()
        elif self._peek() == b"}":
            self._close()
        else:
            self._key()

    def _close(self) -> None:
        self._position += 1
        self._open.pop()

    def _member(self) -> None:
        self._space()
        if self._peek() == b"}":
            self._close()
        elif self._peek() == b",":
            self._position += 1
            self._space()
            self._peek()
            self._key()
        else:
            self._refuse("after object key:value pair")

    def _key(self) -> None:
        if self._peek() != b'"':
            self._refuse("looking for beginning of object key string")
        self._string()
        self._space()
        if self._peek() != b":":
            self._refuse("after object key")
        self._position += 1
        self._value()

    def _element(self) -> None:
        self._space()
        if self._peek() == b"]":
            self._close()
        elif self._peek() == b",":
            self._position += 1
            self._value()
        else:
            self._refuse("after array element")

    def _string(self) -> None:
        self._position += 1
        while True:
            self._skip(_PLAIN)
            byte = self._peek()
            if byte == b'"':
                self._position += 1
                return
            if byte != b"\\":
                self._refuse("in string literal")
            self._position += 1
            self._escape()

    def _escape(self) -> None:
        kind = self._peek()
        if kind == b"u":
            for _ in range(4):
                self._position += 1
                if not _HEX.match(self._peek()):
                    self._refuse("in \\u hexadecimal character escape")
        elif kind not in b'"\\/bfnrt':
            self._refuse("in string escape code")
        self._position += 1

    def _literal(self, word: bytes) -> None:
        for length in range(1, len(word)):
            self._position += 1
            if self._peek() != word[length : length + 1]:
                self._refuse(f"in literal {word.decode()} (expecting '{chr(word[length])}')")
        self._position += 1

    def _number(self) -> None:
        if self._peek() == b"-":
            self._position += 1
            if not self._peek().isdigit():
                self._refuse("in numeric literal")
        if self._peek() == b"0":
            self._position += 1
        else:
            self._skip(_DIGITS)
        if self._text[self._position : self._position + 1] == b".":
            self._position += 1
            self._digits("after decimal point in numeric literal")
        if self._text[self._position : self._position + 1] in (b"e", b"E"):
            self._position += 1
            if self._peek() in (b"+", b"-"):
                self._position += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, context: str) -> None:
        if not self._peek().isdigit():
            self._refuse(context)
        self._skip(_DIGITS)

    def _space(self) -> None:
        self._skip(_SPACE)

    def _skip(self, pattern: re.Pattern[bytes]) -> None:
        match = pattern.match(self._text, self._position)
        assert match is not None, "every pattern matches the empty string"
        self._position = match.end()

    def _peek(self) -> bytes:
        if self._position >= len(self._text):
            raise _SyntaxFault(END)
        return self._text[self._position : self._position + 1]

    def _refuse(self, context: str) -> None:
        character = chr(self._text[self._position])
        literal = {"'": "'\\''", '"': "'\"'"}.get(character) or f"'{gotext.quote(character)[1:-1]}'"
        raise _SyntaxFault(f"invalid character {literal} {context}")
