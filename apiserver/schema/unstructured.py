"""The exact errors of Go's converter for an unstructured object that does not conform to its type, in its order.

The result of a strategic merge patch or server-side apply is not a text: its values are maps, slices, strings, bools,
int64 and float64, and fields are visited in the order of their declaration. It is used only if there is an error.
"""

from typing import Any, Final

from mockube.apimachinery.gonumbers import as_decoded_by_go, is_whole, with_go_numbers
from mockube.apimachinery.schema.model import SchemaType, Shape

from . import base64text, decoder_errors

_NESTED_CLASSES: Final = {Shape.STRUCT: dict, Shape.MAP: dict, Shape.LIST: list}
_RESTORED_FROM: Final = {Shape.STRUCT: "struct from:", Shape.MAP: "map from", Shape.LIST: "slice from"}
_GO_KINDS: Final = {Shape.STRING: "string", Shape.BOOLEAN: "bool"}
_ACCEPTED: Final = {Shape.STRING: (str,), Shape.BOOLEAN: (bool,), Shape.NUMBER: (int, float)}
_BYTE: Final = SchemaType(shape=Shape.INTEGER, go="uint8")


def conversion_error(type_: SchemaType, value: Any) -> str:
    """Return the first error of a value, or "" if Go converts it."""
    if value is None:
        return ""
    if type_.shape in _NESTED_CLASSES:
        if value.__class__ is not _NESTED_CLASSES[type_.shape]:
            return f"cannot restore {_RESTORED_FROM[type_.shape]} {_kind(value)}"
        return _nested_error(type_, value)
    if type_.shape is Shape.BYTES:
        return _bytes_error(value)
    if type_.shape is Shape.INTEGER:
        return _integer_error(type_, value)
    if type_.shape in _ACCEPTED:
        return "" if value.__class__ in _ACCEPTED[type_.shape] else _conversion_failure(type_, value)
    # The type's unmarshaler gets the value as JSON.
    return decoder_errors.find(type_, with_go_numbers(value)).error


def _nested_error(type_: SchemaType, value: Any) -> str:
    if type_.shape is Shape.STRUCT:
        pairs = ((field.type, value.get(name)) for name, field in type_.fields.items())
    else:
        pairs = ((type_.items, item) for item in (value.values() if type_.shape is Shape.MAP else value))
    return next(filter(None, (conversion_error(*pair) for pair in pairs)), "")


def _bytes_error(value: Any) -> str:
    if value.__class__ is list:
        return next(filter(None, (_integer_error(_BYTE, item) for item in value if item is not None)), "")
    if value.__class__ is not str:
        return f"cannot restore slice from {_kind(value)}"
    try:
        base64text.canonical(value)
    except ValueError as error:
        return f"error decoding from json: {error}"
    return ""


def _integer_error(type_: SchemaType, value: Any) -> str:
    if value.__class__ not in (int, float):
        return _conversion_failure(type_, value)
    return "" if is_whole(as_decoded_by_go(value)) else f"cannot convert float64 to {type_.go}"


def _conversion_failure(type_: SchemaType, value: Any) -> str:
    # Go could convert an integer to a string of one character; the converter refuses.
    if type_.shape is Shape.STRING and _kind(value) == "int64":
        return f"cannot convert int64 to {type_.go}"
    return f"unrecognized type: {_GO_KINDS.get(type_.shape, type_.go)}"


def _kind(value: Any) -> str:
    """Return Go's reflect.Kind of a value."""
    if value.__class__ is int:
        return "int64" if value.__class__ is as_decoded_by_go(value).__class__ else "float64"
    return {dict: "map", list: "slice", str: "string", bool: "bool"}.get(value.__class__, "float64")
