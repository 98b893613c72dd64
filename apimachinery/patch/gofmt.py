"""JSON trees as Go names and prints them in upstream's messages: `%v`, `%#v`, and the types that JSON decodes to."""

from typing import Any

from mockube.apimachinery import gotext
from mockube.apimachinery.pieces import sorted_in_pieces

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
    """What the decoder calls a value that is not null."""
    return _JSON_KINDS[type(value)]


def go_type(value: Any) -> str:
    """What `%s` of the value's reflected type shows."""
    return "%!s(<nil>)" if value is None else _GO_TYPES[type(value)]


def format_verb_v(value: Any) -> str:
    """As `%v` shows it: `map[a:1 b:[x y]]`."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{format_verb_v(value[key])}' for key in sorted_in_pieces(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(format_verb_v, value))}]"
    return value if isinstance(value, str) else gotext.format_v(value)


def text(value: Any) -> str:
    """As `%s` shows it: `map[a:x b:%!s(int64=1)]`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{text(value[key])}' for key in sorted_in_pieces(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(text, value))}]"
    return "%!s(<nil>)" if value is None else f"%!s({_GO_TYPES[type(value)]}={gotext.format_v(value)})"


def syntax(value: Any) -> str:
    """As `%#v` shows it: `map[string]interface {}{"a":1}`."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, dict):
        items = ", ".join(f"{gotext.quote(key)}:{syntax(value[key])}" for key in sorted_in_pieces(value))
        return f"map[string]interface {{}}{{{items}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(syntax, value))}}}"
    return gotext.quote(value) if isinstance(value, str) else gotext.format_v(value)
