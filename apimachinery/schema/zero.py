"""What Go writes where nothing was given, and what it leaves out.

These are the rules of `omitempty` and of zero values, decided once for each field; nothing here looks at a value.
"""

from enum import Enum
from typing import Any, Final

from mockube.apimachinery.schema.model import Field, Shape, Type


class _Omitted(Enum):
    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED
"""What is written of a field that is left out."""

_EMPTIABLE: Final = frozenset(
    (Shape.STRING, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN, Shape.BYTES, Shape.LIST, Shape.MAP)
)
"""What can be empty in Go. The other shapes are structs there, and those never are."""

_ZERO: Final = {
    Shape.STRING: "",
    Shape.INTEGER: 0,
    Shape.NUMBER: 0,
    Shape.BOOLEAN: False,
    Shape.QUANTITY: "0",
    Shape.INT_OR_STRING: 0,
}
"""What is not here and no struct is null when nothing is in it."""


_RETAINED_EMPTY: Final = frozenset({"[]v2.HPAScalingPolicy"})
"""Types of lists that are left out if they are absent, and not if they are empty: then no default is filled in."""


def zero(of: Type) -> Any:
    """What Go writes of a variable of this type that nothing was stored in."""
    if of.shape is not Shape.STRUCT:
        return _ZERO.get(of.shape)
    written = {name: absent_value(field) for name, field in of.fields.items()}
    return {name: value for name, value in written.items() if value is not OMITTED}


def absent_value(field: Field) -> Any:
    """What Go writes of a field that was null or not given."""
    if field.omit_zero or (field.omit_empty and (field.pointer or field.type.shape in _EMPTIABLE)):
        return OMITTED
    return None if field.pointer else zero(field.type)


def drops_empty(field: Field) -> bool:
    """Whether Go leaves the field out when a false value is in it: an empty text or list, 0, no time."""
    if field.type.go in _RETAINED_EMPTY:
        return False
    return not field.pointer and (field.omit_zero or (field.omit_empty and field.type.shape in _EMPTIABLE))


def fresh_copy(written: Any) -> Any:
    """What `zero` or `absent` made once and many trees show, as this tree's own, to be filled in."""
    if written.__class__ is not dict:
        return written
    return {name: fresh_copy(value) for name, value in written.items()}
