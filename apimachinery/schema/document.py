"""JSON parsed without a loss, with repeated keys and the digits of numbers, and the tree that Go reads from it.

Slower than orjson, and only for texts with repeated keys or errors. Objects are `Members` here, numbers `Literal`s;
everything else is as in orjson. Go reads the second value of a field into what the first left there: the members of two
objects come together, elements of two lists too if they have the same index, and null undoes only what Go can hold nil.
"""

import json  # noqa: TID251 - orjson keeps neither a key's first value nor the digits of a number
from typing import Any, Final

from mockube.apimachinery.schema.model import Field, Shape, Type

_UNMOVED_BY_NULL: Final = frozenset(
    (Shape.STRUCT, Shape.STRING, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN, Shape.ANY)
)
"""Shapes that keep their value when null follows, unless they are behind a pointer."""


class Members(list[tuple[str, Any]]):
    """An object's members, in order."""


class Literal(str):
    """A number as it was written."""

    __slots__ = ()

    def number(self) -> int | float:
        """Return the number as orjson reads it: an integer if 64 bits can hold it."""
        if len(self) <= 20 and self.lstrip("-").isdigit() and -(2**63) <= int(self) < 2**64:
            return int(self)
        return float(self)


def parse(text: bytes) -> Any:
    """Parse a text that orjson has parsed already."""
    return json.loads(text, object_pairs_hook=Members, parse_int=_literal, parse_float=_literal)


def _literal(text: str) -> Literal:
    # A function in Python lets other threads run: there may be a million numbers.
    return Literal(text)


# --- fields that come twice


def merge_repeated_fields(of: Type, value: Any, earlier: Any = None) -> Any:
    """Return the tree that Go reads, after `earlier`, from a document in which `faults.py` finds no error."""
    if of.shape is Shape.STRUCT and value.__class__ is Members:
        return _merge_struct(of, value, earlier or {})
    if of.shape is Shape.MAP and value.__class__ is Members:
        return (earlier or {}) | {key: merge_repeated_fields(of.items, item) for key, item in value}
    if of.shape is Shape.LIST and value.__class__ is list:
        before = (earlier or []) + [None] * len(value)
        return [merge_repeated_fields(of.items, item, old) for item, old in zip(value, before, strict=False)]
    return _to_plain(value)


def _merge_struct(of: Type, members: Members, earlier: dict[str, Any]) -> dict[str, Any]:
    struct = dict(earlier)
    for name, value in members:
        field = of.fields.get(name)
        if field is None:
            struct[name] = _to_plain(value)
        elif not (value is None and name in struct and _keeps_its_value(field)):
            struct[name] = merge_repeated_fields(field.type, value, struct.get(name))
    return struct


def _keeps_its_value(field: Field) -> bool:
    return not field.pointer and field.type.shape in _UNMOVED_BY_NULL


def _to_plain(value: Any) -> Any:
    """As orjson would have read it."""
    if value.__class__ is Members:
        return {key: _to_plain(item) for key, item in value}
    if value.__class__ is list:
        return [_to_plain(item) for item in value]
    return value.number() if isinstance(value, Literal) else value
