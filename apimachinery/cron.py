"""Schedules of CronJobs, such as `*/5 * * * *` or `@hourly`: the syntax and the arithmetic of robfig/cron v3."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from . import gotext
from .durations import DurationError, parse_duration

NEVER: Final = datetime.min.replace(tzinfo=UTC)
"""The result of `next` for a schedule without a time in the next five years: Go's zero time."""
_YEARS: Final = 5
_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


class ScheduleError(ValueError):
    """A text is not a valid schedule; the message is robfig/cron's."""


class _Bounds(NamedTuple):
    """The range of a field and the names of its values."""

    minimum: int
    maximum: int
    names: Mapping[str, int]


class _FieldValues(NamedTuple):
    """The values that a field allows, and whether the field is a star."""

    values: frozenset[int]
    is_star: bool


def _number_names(names: str, first: int) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


_FIELDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, _number_names("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Bounds(0, 6, _number_names("sun mon tue wed thu fri sat", 0)),
)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY_PREFIX: Final = "@every "
_ZONE_PREFIXES: Final = ("TZ=", "CRON_TZ=")


class ConstantDelaySchedule(Struct, frozen=True):
    """A schedule with a constant delay between two times: `@every 5m`."""

    delay: timedelta

    def next(self, after: datetime) -> datetime:
        """Return the first time after `after`, in whole seconds."""
        return after.replace(microsecond=0) + self.delay


class SpecSchedule(Struct, frozen=True):
    """A schedule of five fields, evaluated in a time zone."""

    minute: _FieldValues
    hour: _FieldValues
    day: _FieldValues
    month: _FieldValues
    weekday: _FieldValues
    zone: tzinfo

    def next(self, after: datetime) -> datetime:
        """Return the first time after `after`, in the zone of `after`; `NEVER` if there is none within five years."""
        if after == NEVER:
            return NEVER
        time = (after.astimezone(UTC) + _SECOND).replace(microsecond=0).astimezone(self.zone)
        last_year = time.year + _YEARS
        is_truncated = False
        while time.year <= last_year:
            candidate, is_truncated = self._next_candidate(time, is_truncated=is_truncated)
            if candidate is None:
                return time.astimezone(after.tzinfo)
            time = candidate
        return NEVER

    def _next_candidate(self, time: datetime, *, is_truncated: bool) -> tuple[datetime | None, bool]:
        """Return a later time before which the schedule has no time, or None if `time` is in the schedule.

        The first step of a search sets the smaller units to their minimum. `is_truncated` is true from then on.
        """
        if time.month not in self.month.values:
            first = (
                time
                if is_truncated
                else self._resolve_wall_time(time.replace(day=1, hour=0, minute=0, second=0))
            )
            year, month = first.year + first.month // 12, first.month % 12 + 1
            return self._resolve_wall_time(first.replace(year=year, month=month)), True
        if not self._is_day(time):
            midnight = (
                time if is_truncated else self._resolve_wall_time(time.replace(hour=0, minute=0, second=0))
            )
            return self._start_of_day(self._resolve_wall_time(midnight.replace(tzinfo=None) + _DAY)), True
        if time.hour not in self.hour.values:
            hour = time if is_truncated else self._resolve_wall_time(time.replace(minute=0, second=0))
            return self._add(hour, _HOUR), True
        if time.minute not in self.minute.values or time.second:
            return self._add(time, _MINUTE - timedelta(seconds=time.second)), True
        return None, is_truncated

    def _is_day(self, time: datetime) -> bool:
        """Return whether the day matches: both fields must match if one is a star; otherwise one match is enough."""
        is_day = time.day in self.day.values
        is_weekday = time.isoweekday() % 7 in self.weekday.values
        if self.day.is_star or self.weekday.is_star:
            return is_day and is_weekday
        return is_day or is_weekday

    def _resolve_wall_time(self, wall: datetime) -> datetime:
        """Return the time of a wall-clock reading, as Go's time.Date resolves ambiguous and nonexistent readings."""
        naive = wall.replace(tzinfo=UTC, fold=0)
        guess = naive - self._offset(naive)
        return (naive - self._offset(guess)).astimezone(self.zone)

    def _offset(self, utc: datetime) -> timedelta:
        """Return the zone's offset from UTC at a time."""
        return utc.astimezone(self.zone).utcoffset() or timedelta()

    def _start_of_day(self, time: datetime) -> datetime:
        """Move a time near midnight to the hour 0: a clock change can shift midnight. robfig/cron does the same."""
        if time.hour == 0:
            return time
        return self._add(time, _HOUR * (24 - time.hour if time.hour > 12 else -time.hour))

    def _add(self, time: datetime, span: timedelta) -> datetime:
        """Add elapsed time, independent of clock changes in between."""
        return (time.astimezone(UTC) + span).astimezone(self.zone)


Schedule = ConstantDelaySchedule | SpecSchedule


def parse(schedule: str) -> Schedule:
    """Parse a schedule; raise `ScheduleError` if it is invalid. The default time zone is UTC."""
    zone: tzinfo = UTC
    if not schedule:
        raise ScheduleError("empty spec string")
    if schedule.startswith(_ZONE_PREFIXES):
        zone, schedule = _split_zone(schedule)
    if schedule.startswith(_EVERY_PREFIX):
        return _parse_every(schedule)
    if schedule.startswith("@"):
        if schedule not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {schedule}")
        schedule = _DESCRIPTORS[schedule]
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        field_list = " ".join(fields)
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{field_list}]")
    minute, hour, day, month, weekday = map(_parse_field, fields, _FIELDS)
    return SpecSchedule(minute, hour, day, month, weekday, zone)


def _split_zone(schedule: str) -> tuple[tzinfo, str]:
    name, space, rest = schedule.partition("=")[2].partition(" ")
    if not space:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    if problem := zone_problem(name):
        raise ScheduleError(f"provided bad location {name}: {problem}")
    return zone_of(name), rest.strip()


def _parse_every(schedule: str) -> ConstantDelaySchedule:
    try:
        nanoseconds = parse_duration(schedule.removeprefix(_EVERY_PREFIX))
    except DurationError as problem:
        raise ScheduleError(f"failed to parse duration {schedule}: {problem}") from problem
    return ConstantDelaySchedule(timedelta(seconds=max(1, nanoseconds // 10**9)))


def _parse_field(text: str, bounds: _Bounds) -> _FieldValues:
    parts = [_parse_range(part, bounds) for part in text.split(",") if part]
    values = frozenset(value for part in parts for value in part.values)
    return _FieldValues(values, is_star=any(part.is_star for part in parts))


def _parse_range(text: str, bounds: _Bounds) -> _FieldValues:
    """Parse `*`, a number or `low-high`, optionally followed by a slash and the step."""
    limits, *steps = text.split("/")
    low, *high = limits.split("-")
    is_star = low in ("*", "?")
    if is_star:
        first, last = bounds.minimum, bounds.maximum
    else:
        first = _parse_number_or_name(low, bounds)
        if len(high) > 1:
            raise ScheduleError(f"too many hyphens: {text}")
        last = _parse_number_or_name(high[0], bounds) if high else first
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _parse_number(steps[0]) if steps else 1
    if steps and not high:
        last = bounds.maximum
    _check_range(first, last, step, bounds, text)
    return _FieldValues(frozenset(range(first, last + 1, step)), is_star=is_star and step == 1)


def _check_range(first: int, last: int, step: int, bounds: _Bounds, text: str) -> None:
    if first < bounds.minimum:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({bounds.minimum}): {text}")
    if last > bounds.maximum:
        raise ScheduleError(f"end of range ({last}) above maximum ({bounds.maximum}): {text}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if not step:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _parse_number_or_name(text: str, bounds: _Bounds) -> int:
    number = bounds.names.get(text.lower())
    return _parse_number(text) if number is None else number


def _parse_number(text: str) -> int:
    try:
        number = gotext.parse_int(text, function="Atoi")
    except gotext.NumberError as problem:
        raise ScheduleError(f"failed to parse int from {text}: {problem}") from problem
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number


# --- time zones

LOCAL: Final = "Local"


def zone_of(name: str) -> tzinfo:
    """Return the zone of a valid name; "" and `Local` are UTC."""
    return UTC if name in ("", LOCAL) else ZoneInfo(name)


def zone_problem(name: str) -> str:
    """Return the error of an unknown time zone, or ""."""
    if name in ("", LOCAL):
        return ""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a name may be too long for a file
        return f"unknown time zone {name}"
    return ""
