"""Values of objects without a type at a path of fields, with the errors of upstream's accessors."""

from typing import Any, Final

from mockube.apimachinery import gotext
from mockube.apimachinery.gonumbers import as_decoded_by_go

_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "<nil>",
}


class AccessorError(ValueError):
    """A value on the path has another type; the message is upstream's."""


def nested_value(tree: Any, path: tuple[str, ...], expected: type) -> Any:
    """Return the value at a path, None if there is none; null is a value of another type."""
    value = tree
    for index, step in enumerate(path):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _accessor_error(path[: index + 1], value, "map[string]interface{}")
        if step not in value:
            return None
        value = value[step]
    if value.__class__ in (int, float):
        value = as_decoded_by_go(value)
    if value.__class__ is not expected:
        raise _accessor_error(path, value, _GO_TYPES[expected])
    return value


def _accessor_error(path: tuple[str, ...], value: Any, expected: str) -> AccessorError:
    actual_type = _GO_TYPES[value.__class__]
    return AccessorError(
        f".{'.'.join(path)} accessor error: {_go_text(value)} is of the type {actual_type}, expected {expected}"
    )


def _go_text(value: Any) -> str:
    """Format a value like Go's `%v`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go_text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_text, value))}]"
    if isinstance(value, str):
        return value
    return (
        "<nil>"
        if value is None
        else gotext.format_v(as_decoded_by_go(value) if value.__class__ is int else value)
    )
