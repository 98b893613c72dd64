"""The validation of schedules of CronJobs, such as `*/5 * * * *`, and of their time zones."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path


class ScheduleError(ValueError):
    """A text is not a schedule; the message is that of upstream's parser."""


class _Bounds(NamedTuple):
    least: int
    most: int
    names: Mapping[str, int]


def _numbered(names: str, first: int) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


_FIELDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Bounds(0, 6, _numbered("sun mon tue wed thu fri sat", 0)),
)
_DESCRIPTORS: Final = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
_EVERY: Final = "@every "
_ZONES: Final = ("TZ=", "CRON_TZ=")


def read(schedule: str) -> None:
    """Raise `ScheduleError` if this is not a schedule."""
    if not schedule:
        raise ScheduleError("empty spec string")
    if schedule.startswith(_ZONES):
        schedule = _without_zone(schedule)
    if schedule.startswith("@"):
        _read_descriptor(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        shown = " ".join(fields)
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{shown}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for part in filter(None, field.split(",")):
            _read_range(part, bounds)


def _without_zone(schedule: str) -> str:
    zone, space, rest = schedule.partition("=")[2].partition(" ")
    if not space:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    if problem := _zone_problem(zone):
        raise ScheduleError(f"provided bad location {zone}: {problem}")
    return rest.strip()


def _read_descriptor(schedule: str) -> None:
    if schedule.startswith(_EVERY):
        try:
            parse_duration(schedule.removeprefix(_EVERY))
        except DurationError as problem:
            raise ScheduleError(f"failed to parse duration {schedule}: {problem}") from problem
    elif schedule not in _DESCRIPTORS:
        raise ScheduleError(f"unrecognized descriptor: {schedule}")


def _read_range(text: str, bounds: _Bounds) -> None:
    """`*`, a number or `low-high`, and after a slash the step."""
    limits, *steps = text.split("/")
    low, *high = limits.split("-")
    if low in ("*", "?"):
        first, last = bounds.least, bounds.most
    else:
        first = _number(low, bounds)
        if len(high) > 1:
            raise ScheduleError(f"too many hyphens: {text}")
        last = _number(high[0], bounds) if high else first
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _parse(steps[0]) if steps else 1
    if steps and not high:
        last = bounds.most
    _check_range(first, last, step, bounds, text)


def _check_range(first: int, last: int, step: int, bounds: _Bounds, text: str) -> None:
    if first < bounds.least:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({bounds.least}): {text}")
    if last > bounds.most:
        raise ScheduleError(f"end of range ({last}) above maximum ({bounds.most}): {text}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if not step:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _parse(text) if named is None else named


def _parse(text: str) -> int:
    try:
        number = gotext.parse_int(text, function="Atoi")
    except gotext.NumberError as problem:
        raise ScheduleError(f"failed to parse int from {text}: {problem}") from problem
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number


# --- time zones

_ZONE_PART: Final = re.compile(r"(?!-)[A-Za-z.\-_0-9+]{1,14}")
_LOCAL: Final = "Local"


def _zone_problem(zone: str) -> str:
    if zone in ("", _LOCAL):
        return ""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a name may be too long for a file
        return f"unknown time zone {zone}"
    return ""


def check_time_zone(zone: str, path: Path) -> Iterator[FieldError]:
    """Check that the time zone exists and is not `Local`."""
    if not zone:
        yield errors.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or not _ZONE_PART.fullmatch(part):
            yield errors.invalid(path, zone, f"unknown time zone {zone}")
            return
    if zone.lower() == _LOCAL.lower():
        problem = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield errors.invalid(path, zone, problem)
    if problem := _zone_problem(zone):
        yield errors.invalid(path, zone, problem)


def check_schedule(schedule: str, zone: str | None, path: Path, *, had_zone: bool) -> Iterator[FieldError]:
    """`had_zone`: the schedule named its time zone before there was a field for that."""
    try:
        read(schedule)
    except ScheduleError as wrong:
        yield errors.invalid(path, schedule, str(wrong))
    if "TZ" not in schedule:
        return
    if not had_zone:
        problem = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield errors.invalid(path, schedule, problem)
    elif zone is not None:
        problem = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield errors.invalid(path, schedule, problem)
