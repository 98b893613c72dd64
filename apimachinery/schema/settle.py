"""What is left of a document in which fields come twice: Go reads the second value into what the first left there.

So the members of two objects come together, elements of two lists too if they have the same index, and null undoes
only what Go can hold nil. A tree has room for one value, so this begins with what `document.py` makes of the text.
"""

from typing import Any, Final

from mockube.apimachinery.schema.document import Literal, Members
from mockube.apimachinery.schema.model import Field, Shape, Type

_UNMOVED_BY_NULL: Final = frozenset(
    (Shape.STRUCT, Shape.STRING, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN, Shape.ANY)
)
"""Unless they are behind a pointer."""


def settle(of: Type, value: Any, earlier: Any = None) -> Any:
    """The tree that Go would have read, after `earlier`, from a document that `faults.py` finds no error in."""
    if of.shape is Shape.STRUCT and value.__class__ is Members:
        return _struct(of, value, earlier or {})
    if of.shape is Shape.MAP and value.__class__ is Members:
        return (earlier or {}) | {key: settle(of.items, item) for key, item in value}
    if of.shape is Shape.LIST and value.__class__ is list:
        before = (earlier or []) + [None] * len(value)
        return [settle(of.items, item, old) for item, old in zip(value, before, strict=False)]
    return _to_plain(value)


def _struct(of: Type, members: Members, earlier: dict[str, Any]) -> dict[str, Any]:
    struct = dict(earlier)
    for name, value in members:
        field = of.fields.get(name)
        if field is None:
            struct[name] = _to_plain(value)
        elif not (value is None and name in struct and _keeps_its_value(field)):
            struct[name] = settle(field.type, value, struct.get(name))
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
