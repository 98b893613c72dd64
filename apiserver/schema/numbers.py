"""Conversion of the numbers of unstructured objects to the integers of a type, as by Go's unstructured converter.

The numbers of a patch or an applied configuration are int64 or float64. A float64 without a fraction is converted to an
integer, and an integer that is too large for its field keeps the low bits.
"""

from typing import Any

from mockube.apimachinery import gonumbers
from mockube.apimachinery.schema.model import SchemaType, Shape


def convert_numbers(type_: SchemaType, value: Any) -> Any:
    """Return a value with its numbers converted; the same value if none changes."""
    if value.__class__ is dict:
        return _convert_members(type_, value)
    if value.__class__ is list:
        return _convert_items(type_, value)
    if type_.shape is Shape.INTEGER and value.__class__ in (int, float):
        return _integer(value, 32 if "int32" in type_.go else 64)
    return gonumbers.with_go_numbers(value) if type_.shape is Shape.INT_OR_STRING else value


def _convert_members(type_: SchemaType, value: dict[str, Any]) -> dict[str, Any]:
    if type_.shape is Shape.STRUCT:
        types = {name: field.type for name, field in type_.fields.items() if name in value}
    elif type_.shape is Shape.MAP:
        types = dict.fromkeys(value, type_.items)
    else:
        return value
    changed = {
        name: new
        for name, member_type in types.items()
        if (new := convert_numbers(member_type, value[name])) is not value[name]
    }
    return value | changed if changed else value


def _convert_items(type_: SchemaType, value: list[Any]) -> list[Any]:
    if type_.shape is not Shape.LIST:
        return value
    items = [convert_numbers(type_.items, item) for item in value]
    return items if any(new is not old for new, old in zip(items, value, strict=True)) else value


def _integer(value: float, bits: int) -> int | float:
    read = gonumbers.as_decoded_by_go(value)
    if not gonumbers.is_whole(read):
        return value
    integer = gonumbers.int64(read) if isinstance(read, float) else read
    half = 1 << (bits - 1)
    converted = (integer + half) % (2 * half) - half
    return value if converted == value and isinstance(value, int) else converted
