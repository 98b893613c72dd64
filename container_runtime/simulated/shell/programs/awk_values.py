"""The values of awk: numbers, strings, and input that looks like a number."""

import re
from math import isinf, isnan
from typing import Final, TypeAlias

from .printf import Formatter

_NUMBER: Final = re.compile(
    r"\s*([-+]?(?:[0-9]{1,300}\.?[0-9]{0,300}|\.[0-9]{1,300})(?:[eE][-+]?[0-9]{1,3})?)"
)
_CONVERSION: Final = re.compile(r"%[-+0 #]{0,8}[0-9]{0,9}(?:\.[0-9]{0,9})?([diouxXcsaeEfFgG%])|%[^%]*$")
_LIMIT: Final = 1 << 53


class InputText(str):
    """A field or another input, which is compared as a number if it looks like one."""

    __slots__ = ()


AwkValue: TypeAlias = float | str | None
"""A number, a string, or None for a variable that was not assigned."""


def to_number(value: AwkValue) -> float:
    if value is None:
        return 0.0
    if isinstance(value, str):
        match = _NUMBER.match(value)
        return float(match[1]) if match else 0.0
    return float(value)


def to_text(value: AwkValue, conversion: str = "%.6g") -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    number = float(value)
    if isnan(number) or isinf(number):
        return "nan" if isnan(number) else "inf" if number > 0 else "-inf"
    if number == int(number) and abs(number) < _LIMIT * 1024:
        return str(int(number))
    return format_values(conversion, [number])


def is_true(value: AwkValue) -> bool:
    if isinstance(value, InputText):
        number = numeric_value(value)
        return bool(value) if number is None else number != 0
    return bool(value)


def numeric_value(value: AwkValue) -> float | None:
    """Return the number if a value is compared as one."""
    if value is None:
        return 0.0
    if isinstance(value, InputText):
        match = _NUMBER.match(value)
        return float(match[1]) if match and not value[match.end() :].strip() else None
    return None if isinstance(value, str) else float(value)


def compare(left: AwkValue, right: AwkValue) -> int:
    """Return a negative number, zero or a positive number."""
    first, second = numeric_value(left), numeric_value(right)
    if (
        first is not None
        and second is not None
        and not (left is None and isinstance(right, str) and not isinstance(right, InputText))
    ):
        return (first > second) - (first < second)
    texts = to_text(left), to_text(right)
    return (texts[0] > texts[1]) - (texts[0] < texts[1])


def format_values(format_text: str, values: list[AwkValue]) -> str:
    """Return the output of printf."""
    remaining = list(values)
    parts: list[str] = []
    position = 0
    for match in _CONVERSION.finditer(format_text):
        parts.append(format_text[position : match.start()])
        position = match.end()
        kind = match[1]
        if kind is None or kind == "%":
            parts.append("%" if kind else match[0])
            continue
        parts.append(_convert(match[0], kind, remaining.pop(0) if remaining else None))
    return "".join(parts) + format_text[position:]


def _convert(directive: str, kind: str, value: AwkValue) -> str:
    if kind == "c":
        text = (
            chr(int(to_number(value)) % 0x110000)
            if not isinstance(value, str) and value is not None
            else to_text(value)[:1]
        )
        return Formatter(directive.replace("c", "s"), [text]).texts()
    if kind == "s":
        return Formatter(directive, [to_text(value)]).texts()
    number = to_number(value)
    if kind in "diouxX":
        integer = 0 if isnan(number) or isinf(number) else int(number)
        return Formatter(directive, [str(integer)]).texts()
    return Formatter(directive, [repr(number)]).texts()
