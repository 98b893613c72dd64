"""Formatting of JSON trees as in Go's messages: `%v`, `%s`, `%#v`, and the names of types."""

from typing import Any

from mockube.apimachinery import gotext
from mockube.apimachinery.gonumbers import as_decoded_by_go
from mockube.apimachinery.piecewise import sorted_in_pieces

_JSON_KINDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def json_kind(value: Any) -> str:
    """Return the name of a value, which is not null, in errors of Go's JSON decoder."""
    return _JSON_KINDS[type(value)]


def go_type(value: Any) -> str:
    """Return the name of a value's Go type, as `%s` of its reflect.Type prints it."""
    return "%!s(<nil>)" if value is None else _GO_TYPES[type(value)]


def format_verb_v(value: Any) -> str:
    """Format a value as `%v` does: `map[a:1 b:[x y]]`."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{format_verb_v(value[key])}' for key in sorted_in_pieces(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(format_verb_v, value))}]"
    return value if isinstance(value, str) else gotext.format_v(_decode_scalar(value))


def _decode_scalar(value: Any) -> Any:
    """Return a scalar as Go's decoder returns it: integers beyond 64 bits are floats."""
    return as_decoded_by_go(value) if value.__class__ is int else value


def format_verb_s(value: Any) -> str:
    """Format a value as `%s` does: `map[a:x b:%!s(int64=1)]`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{format_verb_s(value[key])}' for key in sorted_in_pieces(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(format_verb_s, value))}]"
    if value is None:
        return "%!s(<nil>)"
    decoded = _decode_scalar(value)
    return f"%!s({_GO_TYPES[type(decoded)]}={gotext.format_v(decoded)})"


def format_go_syntax(value: Any) -> str:
    """Format a value as `%#v` does: `map[string]interface {}{"a":1}`."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, dict):
        items = ", ".join(
            f"{gotext.quote(key)}:{format_go_syntax(value[key])}" for key in sorted_in_pieces(value)
        )
        return f"map[string]interface {{}}{{{items}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(format_go_syntax, value))}}}"
    return gotext.quote(value) if isinstance(value, str) else gotext.format_v(value)
