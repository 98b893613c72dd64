"""Lossless parsing of JSON, with duplicate keys and the digits of numbers, and the tree that Go decodes from it.

It is slower than orjson, and only for texts with duplicate keys or errors. Objects are `Members`, numbers are `NumberLiteral`s;
all else is as in orjson. Go decodes the second value of a field into the first: the members of two objects are merged, and
so are the elements of two lists with the same index; null resets only what can be nil in Go.
"""

import json  # noqa: TID251 - orjson keeps neither a key's first value nor the digits of a number
from typing import Any, Final

from mockube.apimachinery.schema.model import Field, SchemaType, Shape

_UNCHANGED_BY_NULL: Final = frozenset(
    (Shape.STRUCT, Shape.STRING, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN, Shape.ANY)
)
"""The shapes whose value a later null does not change, unless they are behind a pointer."""


class Members(list[tuple[str, Any]]):
    """The members of an object, in order and with duplicate keys."""


class NumberLiteral(str):
    """A number in its original text."""

    __slots__ = ()

    def number(self) -> int | float:
        """Return the number as orjson decodes it: an integer if it fits into 64 bits."""
        if len(self) <= 20 and self.lstrip("-").isdigit() and -(2**63) <= int(self) < 2**64:
            return int(self)
        return float(self)


def parse(text: bytes) -> Any:
    """Parse a text that is valid for orjson."""
    return json.loads(text, object_pairs_hook=Members, parse_int=_literal, parse_float=_literal)


def _literal(text: str) -> NumberLiteral:
    # A function in Python lets other threads run: there can be a million numbers.
    return NumberLiteral(text)


# --- duplicate fields


def merge_repeated_fields(type_: SchemaType, value: Any, earlier: Any = None) -> Any:
    """Return the tree that Go decodes from a document, into `earlier` if given. The document must be without errors."""
    if type_.shape is Shape.STRUCT and value.__class__ is Members:
        return _merge_struct(type_, value, earlier or {})
    if type_.shape is Shape.MAP and value.__class__ is Members:
        return (earlier or {}) | {key: merge_repeated_fields(type_.items, item) for key, item in value}
    if type_.shape is Shape.LIST and value.__class__ is list:
        before = (earlier or []) + [None] * len(value)
        return [
            merge_repeated_fields(type_.items, item, old) for item, old in zip(value, before, strict=False)
        ]
    return _to_plain(value)


def _merge_struct(type_: SchemaType, members: Members, earlier: dict[str, Any]) -> dict[str, Any]:
    struct = dict(earlier)
    for name, value in members:
        field = type_.fields.get(name)
        if field is None:
            struct[name] = _to_plain(value)
        elif not (value is None and name in struct and _keeps_its_value(field)):
            struct[name] = merge_repeated_fields(field.type, value, struct.get(name))
    return struct


def _keeps_its_value(field: Field) -> bool:
    return not field.pointer and field.type.shape in _UNCHANGED_BY_NULL


def _to_plain(value: Any) -> Any:
    """Return the value as orjson decodes it."""
    if value.__class__ is Members:
        return {key: _to_plain(item) for key, item in value}
    if value.__class__ is list:
        return [_to_plain(item) for item in value]
    return value.number() if isinstance(value, NumberLiteral) else value
