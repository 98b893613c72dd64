"""Go's `fmt.Sprintf` over decoded JSON, as `printf` of templates calls it.

Pure. It supports verbs, widths and precisions of strings, numbers and booleans. The result contains the errors of the
format, as in Go.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery.gotext import format_g, quote

_VERB: Final = re.compile(r"%([-+# 0]*)([0-9]{0,3})(?:\.([0-9]{0,3}))?(.?)", re.DOTALL)
_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "bool",
    int: "int",
    float: "float64",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def go_string(value: Any) -> str:
    """Return a value as Go prints it."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{go_string(item)}' for key, item in sorted(value.items()))}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(go_string, value))}]"
    return str(value)


def sprintf(template: str, *arguments: Any) -> str:
    remaining = list(arguments)

    def format_value(match: re.Match[str]) -> str:
        flags, width, precision, verb = match.groups()
        if verb == "%":
            return "%"
        if not verb:
            return "%!(NOVERB)"
        if not remaining:
            return f"%!{verb}(MISSING)"
        return _pad(_format(verb, remaining.pop(0), flags, precision), flags, width)

    text = _VERB.sub(format_value, template)
    if remaining:
        text += f"%!(EXTRA {', '.join(map(_kind_name, remaining))})"
    return text


def _kind_name(value: Any) -> str:
    return "<nil>" if value is None else f"{_type(value)}={_plain(value)}"


def _type(value: Any) -> str:
    return _TYPES.get(type(value), type(value).__name__)


def _plain(value: Any) -> str:
    return "<nil>" if value is None else go_string(value)


def _format(verb: str, value: Any, flags: str, precision: str | None) -> str:
    for types, verbs in _VERBS:
        if type(value) in types and verb in verbs:
            return verbs[verb](value, flags, precision)
    if verb == "v":
        return _plain(value)
    if verb == "T":
        return "<nil>" if value is None else _type(value)
    if isinstance(value, Mapping | list | tuple) and verb in "sdq":
        return _collection(verb, value, flags, precision)
    return f"%!{verb}({_kind_name(value)})"


def _collection(verb: str, value: Any, flags: str, precision: str | None) -> str:
    def format_value(item: Any) -> str:
        return _format(verb, item, flags, precision)

    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{format_value(key)}:{format_value(value[key])}' for key in sorted(value))}]"
    return f"[{' '.join(map(format_value, value))}]"


def _text(value: str, _: str, precision: str | None) -> str:
    return value if precision is None else value[: int(precision or 0)]


def _quote(value: str, flags: str, precision: str | None) -> str:
    return quote(_text(value, flags, precision))


def _hexadecimal(value: str, _: str, __: str | None) -> str:
    return value.encode().hex()


def _integer_formatter(base: str) -> Callable[[int, str, str | None], str]:
    def format_value(value: int, flags: str, precision: str | None) -> str:
        digits = format(abs(value), base).rjust(int(precision or 0), "0")
        return _sign(value < 0, flags) + digits

    return format_value


def _sign(is_negative: bool, flags: str) -> str:  # noqa: FBT001 - private
    if is_negative:
        return "-"
    return "+" if "+" in flags else " " if " " in flags else ""


def _decimal(verb: str) -> Callable[[float, str, str | None], str]:
    def format_value(value: float, flags: str, precision: str | None) -> str:
        places = 6 if precision is None else int(precision or 0)
        return _sign(value < 0, flags) + format(abs(value), f".{places}{verb}")

    return format_value


def _general(value: float, flags: str, precision: str | None) -> str:
    digits = format_g(abs(value)) if precision is None else format(abs(value), f".{precision or 0}g")
    return _sign(value < 0, flags) + digits


def _character(value: int, _: str, __: str | None) -> str:
    return chr(value) if 0 <= value <= 0x10FFFF else "\ufffd"


_Verbs = Mapping[str, Callable[[Any, str, str | None], str]]
_VERBS: Final[Sequence[tuple[frozenset[type], _Verbs]]] = (
    (frozenset({str}), {"s": _text, "v": _text, "q": _quote, "x": _hexadecimal}),
    (frozenset({bool}), {"t": lambda value, _, __: go_string(value)}),
    (
        frozenset({int}),
        {
            "d": _integer_formatter("d"),
            "v": _integer_formatter("d"),
            "x": _integer_formatter("x"),
            "X": _integer_formatter("X"),
            "o": _integer_formatter("o"),
            "b": _integer_formatter("b"),
            "c": _character,
            "U": lambda value, _, __: f"U+{value:04X}",
        },
    ),
    (
        frozenset({float}),
        {"f": _decimal("f"), "F": _decimal("f"), "e": _decimal("e"), "E": _decimal("E"), "g": _general},
    ),
)


def _pad(text: str, flags: str, width: str) -> str:
    size = int(width or 0)
    if "-" in flags:
        return text.ljust(size)
    if "0" not in flags:
        return text.rjust(size)
    sign = text[:1] if text[:1] in "+- " else ""
    return sign + text[len(sign) :].rjust(size - len(sign), "0")
