"""Times in Kubernetes' formats: RFC 3339 with seconds (`metav1.Time`) or microseconds (`metav1.MicroTime`).

Parsing accepts what Go's `time.Parse` accepts for these layouts, which is more than RFC 3339, and has its error messages.
A time is an aware `datetime`, truncated to microseconds.
"""

import re
from calendar import monthrange
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from .gotext import quote_bytes

_MAX_SECONDS: Final = float(2**63 // 10**9)
"""The seconds in Go's longest `time.Duration`: 292 years."""


class TimestampError(ValueError):
    """A text is not a valid time; the message is Go's."""


def format_time(time: datetime) -> str:
    utc = time if time.tzinfo is UTC else time.astimezone(UTC)
    return f"{utc.isoformat()[:19]}Z"


def format_micro_time(time: datetime) -> str:
    return f"{time.astimezone(UTC).isoformat(timespec='microseconds')[:26]}Z"


def parse_time(text: str) -> datetime:
    """Parse a `metav1.Time`, or raise `TimestampError`."""
    return _parse(text, _TIME)


def parse_micro_time(text: str) -> datetime:
    """Parse a `metav1.MicroTime`, which must have six decimal places, or raise `TimestampError`."""
    return _parse(text, _MICRO_TIME)


def span_of(seconds: float) -> timedelta:
    """Return a duration, limited to the range of Go's `time.Duration`, so that any number in an object is valid."""
    return timedelta(seconds=max(-_MAX_SECONDS, min(seconds, _MAX_SECONDS)))


def after(time: datetime, span: timedelta) -> datetime:
    """Return `time + span`, limited to the range of `datetime`."""
    try:
        return time + span
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if span > timedelta() else datetime.min.replace(tzinfo=UTC)


class _Element(NamedTuple):
    """An element of a Go layout: its text, the pattern that it accepts, and the name and bounds of its number, if any."""

    text: str
    pattern: str
    name: str = ""
    minimum: int = 0
    maximum: int = 0


_ZONE = _Element("Z07:00", "Z|[+-][0-9]{2}:[0-9]{2}")
_SECONDS_ELEMENTS: Final = (
    _Element("2006", "[0-9]{4}"),
    _Element("-", "-"),
    _Element("01", "([0-9]{2})", "month", 1, 12),
    _Element("-", "-"),
    _Element("02", "[0-9]{2}"),
    _Element("T", "T"),
    _Element("15", "([0-9]{1,2})", "hour", 0, 23),
    _Element(":", ":"),
    _Element("04", "([0-9]{2})", "minute", 0, 59),
    _Element(":", ":"),
    _Element("05", "([0-9]{2})", "second", 0, 59),
)
_OFFSET = re.compile("[^Z]([0-9]{2}):(?:([0-9]{2})|..)", re.DOTALL)


class _Layout(NamedTuple):
    text: str
    elements: tuple[_Element, ...]
    full_pattern: re.Pattern[str]


def _layout(fraction: str, pattern: str) -> _Layout:
    """Return a layout. The group of `pattern` matches the digits of the fraction."""
    full_pattern = (
        "([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
        f"{pattern}(?:Z|([+-])([01][0-9]|2[0-4]):([0-5][0-9]|60))"
    )
    elements = (*_SECONDS_ELEMENTS, _Element(fraction, pattern), _ZONE)
    return _Layout(f"2006-01-02T15:04:05{fraction}Z07:00", elements, re.compile(full_pattern))


_TIME = _layout("", "(?:[.,]([0-9]+))?")
_MICRO_TIME = _layout(".000000", "[.,]([0-9]{6})")


def _parse(text: str, layout: _Layout) -> datetime:
    match = layout.full_pattern.fullmatch(text)
    if match is not None:
        with suppress(ValueError, OverflowError):  # out of range: Go's error is made below
            return _to_datetime(*match.groups())
    raise TimestampError(f"parsing time {quote_bytes(text)}{_problem(text, layout)}")


def _to_datetime(*parts: str | None) -> datetime:
    *clock, fraction, sign, hours, minutes = parts
    micros = int((fraction or "")[:6].ljust(6, "0"))
    year, month, day, hour, minute, second = (int(part or 0) for part in clock)
    time = datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC)
    if sign is None:
        return time
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return time - offset if sign == "+" else time + offset


def _problem(text: str, layout: _Layout) -> str:
    """Return Go's message for an invalid text, without the text itself."""
    rest = text
    for element in layout.elements:
        offset_problem = _offset_problem(rest) if element is _ZONE else ""
        if offset_problem:
            return offset_problem
        match = re.match(element.pattern, rest)
        if match is None:
            return f" as {quote_bytes(layout.text)}: cannot parse {quote_bytes(rest)} as {quote_bytes(element.text)}"
        if element.name and not element.minimum <= int(match[1]) <= element.maximum:
            return f": {element.name} out of range"
        rest = rest[match.end() :]
    if rest:
        return f": extra text: {quote_bytes(rest)}"
    return _day_problem(int(text[:4]), int(text[5:7]), int(text[8:10]))


def _offset_problem(rest: str) -> str:
    match = _OFFSET.match(rest)
    if match is None:
        return ""
    hours, minutes = match.groups("0")
    # Go checks hours and minutes before the sign, and reports the later error.
    if int(minutes) > 60:
        return ": time zone offset minute out of range"
    return ": time zone offset hour out of range" if int(hours) > 24 else ""


def _day_problem(year: int, month: int, day: int) -> str:
    days = monthrange(year or 4, month)[1]  # the year 0 was a leap year, which Python does not support
    return ": year out of range" if 1 <= day <= days else ": day out of range"
