"""Numbers of unstructured objects, converted to the integers of a type as Go's converter does.

What a patch or an applied configuration says is no struct yet: its numbers are int64 or float64. A float without a
fraction is converted to an integer, and an integer that is too large for its field keeps the low bits.
"""

from typing import Any

from mockube.apimachinery.gonumbers import as_decoded_by_go, int64, is_whole, rewritten
from mockube.apimachinery.schema.model import Shape, Type


def convert_numbers(of: Type, value: Any) -> Any:
    """The value with its numbers as Go converts them; the same value if that changes nothing."""
    if value.__class__ is dict:
        return _convert_members(of, value)
    if value.__class__ is list:
        return _convert_items(of, value)
    if of.shape is Shape.INTEGER and value.__class__ in (int, float):
        return _integer(value, 32 if "int32" in of.go else 64)
    return rewritten(value) if of.shape is Shape.INT_OR_STRING else value


def _convert_members(of: Type, value: dict[str, Any]) -> dict[str, Any]:
    if of.shape is Shape.STRUCT:
        types = {name: field.type for name, field in of.fields.items() if name in value}
    elif of.shape is Shape.MAP:
        types = dict.fromkeys(value, of.items)
    else:
        return value
    changed = {
        name: new
        for name, type_ in types.items()
        if (new := convert_numbers(type_, value[name])) is not value[name]
    }
    return value | changed if changed else value


def _convert_items(of: Type, value: list[Any]) -> list[Any]:
    if of.shape is not Shape.LIST:
        return value
    items = [convert_numbers(of.items, item) for item in value]
    return items if any(new is not old for new, old in zip(items, value, strict=True)) else value


def _integer(value: float, bits: int) -> int | float:
    read = as_decoded_by_go(value)
    if not is_whole(read):
        return value
    integer = int64(read) if isinstance(read, float) else read
    half = 1 << (bits - 1)
    converted = (integer + half) % (2 * half) - half
    return value if converted == value and isinstance(value, int) else converted
