"""Durations as Go formats and parses them: `1h30m0s`, `250ms`. A duration is a whole number of nanoseconds."""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from .gotext import quote_bytes

Nanoseconds: TypeAlias = int

_UNITS: Final[Mapping[str, Nanoseconds]] = {
    "ns": 1,
    "us": 10**3,
    "\N{MICRO SIGN}s": 10**3,
    "\N{GREEK SMALL LETTER MU}s": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)", re.DOTALL)
_LIMIT: Final = 2**63


class DurationError(ValueError):
    """A text is not a duration; the message is Go's."""

    def __init__(self, problem: str, text: str) -> None:
        super().__init__(f"time: {problem} {quote_bytes(text)}")


def format_duration(span: Nanoseconds) -> str:
    sign = "-" if span < 0 else ""
    span = abs(span)
    if span == 0:
        return "0s"
    for unit, digits in (("ns", 0), ("\N{MICRO SIGN}s", 3), ("ms", 6)):
        if span < 10 ** (digits + 3):
            return f"{sign}{_decimal(span, digits)}{unit}"
    minutes, rest = divmod(span, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    prefix = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{prefix}{_decimal(rest, 9)}s"


def _decimal(number: int, digits: int) -> str:
    integer, fraction = divmod(number, 10**digits)
    return f"{integer}.{fraction:0{digits}}".rstrip("0").rstrip(".") if fraction else str(integer)


def parse_duration(text: str) -> Nanoseconds:
    """Return the duration of a text; raise `DurationError` if it is invalid."""
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if rest == "0":
        return 0
    if not rest:
        raise DurationError("invalid duration", text)
    span, position = 0, len(text) - len(rest)
    while position < len(text):
        part, position = _parse_part(text, position)
        span += part
        if span > _LIMIT:
            raise DurationError("invalid duration", text)
    if text.startswith("-"):
        return -span
    if span == _LIMIT:
        raise DurationError("invalid duration", text)
    return span


def _parse_part(text: str, position: int) -> tuple[Nanoseconds, int]:
    """Parse the number and the unit at a position; return the duration and the position after them."""
    match = _PART.match(text, position)
    assert match is not None  # the pattern matches anything
    integer, fraction, unit = match.groups("")
    significant = integer.lstrip("0")
    if not (integer or fraction) or len(significant) > 19 or int(significant or 0) > _LIMIT:
        raise DurationError("invalid duration", text)
    if not unit:
        raise DurationError("missing unit in duration", text)
    if unit not in _UNITS:
        raise DurationError(f"unknown unit {quote_bytes(unit)} in duration", text)
    size = _UNITS[unit]
    if int(significant or 0) > _LIMIT // size:
        raise DurationError("invalid duration", text)
    span = int(significant or 0) * size + _parse_fraction(fraction, size)
    if span > _LIMIT:
        raise DurationError("invalid duration", text)
    return span, match.end()


def _parse_fraction(digits: str, size: Nanoseconds) -> Nanoseconds:
    """Return the duration of a fraction, computed in floating point as Go does, so that the last nanosecond is the same."""
    number, scale = 0, 1.0
    for digit in digits:
        longer = number * 10 + int(digit)
        if longer > _LIMIT:
            break
        number, scale = longer, scale * 10
    return int(number * (size / scale))
