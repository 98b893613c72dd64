"""The errors of Go's converter for an unstructured object that is not of its type, to the letter and in its order.

What a strategic merge patch or server-side apply made is no text: its values are maps, slices, strings, bools, int64
and float64, and fields are visited in the order in which the struct declares them. Asked only when something is wrong.
"""

from typing import Any, Final

from mockube.apimachinery.gonumbers import as_decoded_by_go, is_whole, rewritten
from mockube.apimachinery.schema import base64text, faults
from mockube.apimachinery.schema.model import Shape, Type

_INSIDE: Final = {Shape.STRUCT: dict, Shape.MAP: dict, Shape.LIST: list}
_FROM: Final = {Shape.STRUCT: "struct from:", Shape.MAP: "map from", Shape.LIST: "slice from"}
_GO_KINDS: Final = {Shape.STRING: "string", Shape.BOOLEAN: "bool"}
_ACCEPTED: Final = {Shape.STRING: (str,), Shape.BOOLEAN: (bool,), Shape.NUMBER: (int, float)}
_BYTE: Final = Type(shape=Shape.INTEGER, go="uint8")


def fault(of: Type, value: Any) -> str:
    """The first thing that is wrong with a value, or "" if Go would convert it."""
    if value is None:
        return ""
    if of.shape in _INSIDE:
        if value.__class__ is not _INSIDE[of.shape]:
            return f"cannot restore {_FROM[of.shape]} {_kind(value)}"
        return _inside(of, value)
    if of.shape is Shape.BYTES:
        return _bytes_fault(value)
    if of.shape is Shape.INTEGER:
        return _integer_fault(of, value)
    if of.shape in _ACCEPTED:
        return "" if value.__class__ in _ACCEPTED[of.shape] else _not_converted(of, value)
    return faults.find(of, rewritten(value)).error  # its own unmarshaller gets the value as JSON


def _inside(of: Type, value: Any) -> str:
    if of.shape is Shape.STRUCT:
        pairs = ((field.type, value.get(name)) for name, field in of.fields.items())
    else:
        pairs = ((of.items, item) for item in (value.values() if of.shape is Shape.MAP else value))
    return next(filter(None, (fault(*pair) for pair in pairs)), "")


def _bytes_fault(value: Any) -> str:
    if value.__class__ is list:
        return next(filter(None, (_integer_fault(_BYTE, item) for item in value if item is not None)), "")
    if value.__class__ is not str:
        return f"cannot restore slice from {_kind(value)}"
    try:
        base64text.canonical(value)
    except ValueError as error:
        return f"error decoding from json: {error}"
    return ""


def _integer_fault(of: Type, value: Any) -> str:
    if value.__class__ not in (int, float):
        return _not_converted(of, value)
    return "" if is_whole(as_decoded_by_go(value)) else f"cannot convert float64 to {of.go}"


def _not_converted(of: Type, value: Any) -> str:
    # Go converts an integer to a string, of one character, and the converter refuses to.
    if of.shape is Shape.STRING and _kind(value) == "int64":
        return f"cannot convert int64 to {of.go}"
    return f"unrecognized type: {_GO_KINDS.get(of.shape, of.go)}"


def _kind(value: Any) -> str:
    """Go's kind of a value."""
    if value.__class__ is int:
        return "int64" if value.__class__ is as_decoded_by_go(value).__class__ else "float64"
    return {dict: "map", list: "slice", str: "string", bool: "bool"}.get(value.__class__, "float64")
