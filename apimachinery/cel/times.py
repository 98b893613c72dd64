"""Parsing, formatting and parts of timestamps and durations."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from . import values
from .values import CelError, Duration, Timestamp

GETTERS: Final = {
    "getFullYear": ("year", "year_with_tz"),
    "getMonth": ("month", "month_with_tz"),
    "getDayOfYear": ("day_of_year", "day_of_year_with_tz"),
    "getDayOfMonth": ("day_of_month", "day_of_month_with_tz"),
    "getDate": ("day_of_month_1_based", "day_of_month_1_based_with_tz"),
    "getDayOfWeek": ("day_of_week", "day_of_week_with_tz"),
    "getHours": ("hours", "hours_with_tz"),
    "getMinutes": ("minutes", "minutes_with_tz"),
    "getSeconds": ("seconds", "seconds_tz"),
    "getMilliseconds": ("milliseconds", "milliseconds_with_tz"),
}
"""Functions, with the names of their overloads without and with a time zone."""
DURATION_UNITS: Final = {
    "hours": 3600 * values.SECOND,
    "minutes": 60 * values.SECOND,
    "seconds": values.SECOND,
    "milliseconds": values.SECOND // 1000,
}
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse(text: str) -> Timestamp | None:
    """Parse a timestamp of RFC 3339 as Go does; None if it is invalid."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    *numbers, fraction, zone = match.groups()
    offset = 0 if zone == "Z" else _zone_offset(zone)
    if offset is None:
        return None
    try:
        time = datetime(*map(int, numbers), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    seconds = (time - _EPOCH) // timedelta(seconds=1) - offset
    if not values.MIN_UNIX_TIME <= seconds <= values.MAX_UNIX_TIME:
        raise CelError("timestamp overflow")
    return Timestamp(seconds * values.SECOND + int((fraction or "0")[:9].ljust(9, "0")), offset)


def _zone_offset(zone: str) -> int | None:
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 24 or minutes > 60:
        return None
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def from_seconds(seconds: int) -> Timestamp:
    if not values.MIN_UNIX_TIME <= seconds <= values.MAX_UNIX_TIME:
        raise CelError("timestamp overflow")
    return Timestamp(seconds * values.SECOND)


def text(value: Timestamp) -> str:
    """Return a timestamp in Go's RFC3339Nano format, with the offset of its text."""
    seconds, nanoseconds = divmod(value.nanoseconds, values.SECOND)
    time = datetime(1970, 1, 1, tzinfo=None) + timedelta(seconds=seconds + value.offset)  # noqa: DTZ001 -- local
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    local_time = f"{time.year:04d}-{time:%m-%dT%H:%M:%S}{fraction}"
    if not value.offset:
        return f"{local_time}Z"
    hours, minutes = divmod(abs(value.offset) // 60, 60)
    return f"{local_time}{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def duration_text(value: Duration) -> str:
    return f"{values.format_fixed(seconds_of(value))}s"


def seconds_of(value: Duration) -> float:
    """Return a duration in seconds, rounded as in Go: the whole seconds and the rest are converted separately."""
    whole_seconds = abs(value.nanoseconds) // values.SECOND
    rest = abs(value.nanoseconds) % values.SECOND
    seconds = whole_seconds + rest / 1e9
    return -seconds if value.nanoseconds < 0 else float(seconds)


class InvalidTimeAccess(Exception):
    """The value is not a timestamp or duration, or does not have the part."""


def get(function: str, value: Any, zone: Any = None) -> int:
    """Return a part of a timestamp, or a duration in a unit."""
    if type(value) is Duration and zone is None and GETTERS[function][0] in DURATION_UNITS:
        unit = DURATION_UNITS[GETTERS[function][0]]
        count = abs(value.nanoseconds) // unit
        return -count if value.nanoseconds < 0 else count
    if type(value) is not Timestamp or (zone is not None and type(zone) is not str):
        raise InvalidTimeAccess
    if function == "getMilliseconds":
        return value.nanoseconds % values.SECOND // 1_000_000
    return _part(function, value.at(_zone(zone) if zone is not None else UTC))


def _part(function: str, time: datetime) -> int:
    parts = {
        "getFullYear": time.year,
        "getMonth": time.month - 1,
        "getDayOfYear": time.timetuple().tm_yday - 1,
        "getDayOfMonth": time.day - 1,
        "getDate": time.day,
        "getDayOfWeek": time.isoweekday() % 7,
        "getHours": time.hour,
        "getMinutes": time.minute,
        "getSeconds": time.second,
    }
    return parts[function]


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if ":" in name:
        return _numeric_zone(name)
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


def _numeric_zone(name: str) -> tzinfo:
    hours, _, minutes = name.partition(":")
    for part in (hours, minutes):
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", part):
            raise CelError(f'strconv.Atoi: parsing "{part}": invalid syntax')
    offset = int(hours) * 60 + int(minutes) * (-1 if name.startswith("-") else 1)
    if abs(offset) >= 24 * 60:
        raise CelError(f"unknown time zone {name}")
    return timezone(timedelta(minutes=offset))
