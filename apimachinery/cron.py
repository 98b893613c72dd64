"""Schedules of CronJobs, such as `*/5 * * * *` or `@hourly`: the dialect and the arithmetic of robfig/cron v3."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from mockube.apimachinery import gotext
from mockube.apimachinery.durations import DurationError, parse_duration

NEVER: Final = datetime.min.replace(tzinfo=UTC)
"""The next time of a schedule without any time within five years; Go's zero time."""
_YEARS: Final = 5
_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


class ScheduleError(ValueError):
    """A text is not a schedule; the message is that of upstream's parser."""


class _Bounds(NamedTuple):
    minimum: int
    maximum: int
    names: Mapping[str, int]


class _Field(NamedTuple):
    """The values that a field allows, and whether it does so by a star."""

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
_EVERY: Final = "@every "
_ZONES: Final = ("TZ=", "CRON_TZ=")


class EveryInterval(Struct, frozen=True):
    """After so long, again and again."""

    delay: timedelta

    def next(self, after: datetime) -> datetime:
        return after.replace(microsecond=0) + self.delay


class Calendar(Struct, frozen=True):
    """At times of the calendar of a zone."""

    minute: _Field
    hour: _Field
    day: _Field
    month: _Field
    weekday: _Field
    zone: tzinfo

    def next(self, after: datetime) -> datetime:
        """The first time after this one, in its zone; `NEVER` if there is none within five years."""
        if after == NEVER:
            return NEVER
        time = (after.astimezone(UTC) + _SECOND).replace(microsecond=0).astimezone(self.zone)
        last_year = time.year + _YEARS
        is_begun = False
        while time.year <= last_year:
            later, is_begun = self._next_candidate(time, is_begun=is_begun)
            if later is None:
                return time.astimezone(after.tzinfo)
            time = later
        return NEVER

    def _next_candidate(self, time: datetime, *, is_begun: bool) -> tuple[datetime | None, bool]:
        """A later time before which none is one of the schedule; None if this one is.

        What is finer than the first step is cut off with it: from then on `is_begun`.
        """
        if time.month not in self.month.values:
            first = time if is_begun else self._at(time.replace(day=1, hour=0, minute=0, second=0))
            year, month = first.year + first.month // 12, first.month % 12 + 1
            return self._at(first.replace(year=year, month=month)), True
        if not self._is_day(time):
            midnight = time if is_begun else self._at(time.replace(hour=0, minute=0, second=0))
            return self._near_midnight(self._at(midnight.replace(tzinfo=None) + _DAY)), True
        if time.hour not in self.hour.values:
            hour = time if is_begun else self._at(time.replace(minute=0, second=0))
            return self._add(hour, _HOUR), True
        if time.minute not in self.minute.values or time.second:
            return self._add(time, _MINUTE - timedelta(seconds=time.second)), True
        return None, is_begun

    def _is_day(self, time: datetime) -> bool:
        """Both must match where one of them is a star; otherwise one is enough."""
        is_day = time.day in self.day.values
        is_weekday = time.isoweekday() % 7 in self.weekday.values
        if self.day.is_star or self.weekday.is_star:
            return is_day and is_weekday
        return is_day or is_weekday

    def _at(self, wall: datetime) -> datetime:
        """What Go makes of a wall clock's time, be it twice there or not at all."""
        naive = wall.replace(tzinfo=UTC, fold=0)
        guess = naive - self._offset(naive)
        return (naive - self._offset(guess)).astimezone(self.zone)

    def _offset(self, utc: datetime) -> timedelta:
        return utc.astimezone(self.zone).utcoffset() or timedelta()

    def _near_midnight(self, time: datetime) -> datetime:
        """The beginning of a day, should the clocks be changed at midnight."""
        if time.hour == 0:
            return time
        return self._add(time, _HOUR * (24 - time.hour if time.hour > 12 else -time.hour))

    def _add(self, time: datetime, span: timedelta) -> datetime:
        """So much later, however the clocks are changed meanwhile."""
        return (time.astimezone(UTC) + span).astimezone(self.zone)


Schedule = EveryInterval | Calendar


def parse(schedule: str) -> Schedule:
    """Raise `ScheduleError` if this is not a schedule. Without a time zone it is one of UTC."""
    zone: tzinfo = UTC
    if not schedule:
        raise ScheduleError("empty spec string")
    if schedule.startswith(_ZONES):
        zone, schedule = _split_zone(schedule)
    if schedule.startswith(_EVERY):
        return _parse_every(schedule)
    if schedule.startswith("@"):
        if schedule not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {schedule}")
        schedule = _DESCRIPTORS[schedule]
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        field_list = " ".join(fields)
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{field_list}]")
    minute, hour, day, month, weekday = map(_field, fields, _FIELDS)
    return Calendar(minute, hour, day, month, weekday, zone)


def _split_zone(schedule: str) -> tuple[tzinfo, str]:
    name, space, rest = schedule.partition("=")[2].partition(" ")
    if not space:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    if problem := zone_problem(name):
        raise ScheduleError(f"provided bad location {name}: {problem}")
    return zone_of(name), rest.strip()


def _parse_every(schedule: str) -> EveryInterval:
    try:
        nanoseconds = parse_duration(schedule.removeprefix(_EVERY))
    except DurationError as problem:
        raise ScheduleError(f"failed to parse duration {schedule}: {problem}") from problem
    return EveryInterval(timedelta(seconds=max(1, nanoseconds // 10**9)))


def _field(text: str, bounds: _Bounds) -> _Field:
    parts = [_range(part, bounds) for part in text.split(",") if part]
    values = frozenset(value for part in parts for value in part.values)
    return _Field(values, is_star=any(part.is_star for part in parts))


def _range(text: str, bounds: _Bounds) -> _Field:
    """`*`, a number or `low-high`, and after a slash the step."""
    limits, *steps = text.split("/")
    low, *high = limits.split("-")
    is_star = low in ("*", "?")
    if is_star:
        first, last = bounds.minimum, bounds.maximum
    else:
        first = _number(low, bounds)
        if len(high) > 1:
            raise ScheduleError(f"too many hyphens: {text}")
        last = _number(high[0], bounds) if high else first
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _parse(steps[0]) if steps else 1
    if steps and not high:
        last = bounds.maximum
    _check_range(first, last, step, bounds, text)
    return _Field(frozenset(range(first, last + 1, step)), is_star=is_star and step == 1)


def _check_range(first: int, last: int, step: int, bounds: _Bounds, text: str) -> None:
    if first < bounds.minimum:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({bounds.minimum}): {text}")
    if last > bounds.maximum:
        raise ScheduleError(f"end of range ({last}) above maximum ({bounds.maximum}): {text}")
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

LOCAL: Final = "Local"


def zone_of(name: str) -> tzinfo:
    """The zone of a name that has no problem; no name and `Local` are UTC."""
    return UTC if name in ("", LOCAL) else ZoneInfo(name)


def zone_problem(name: str) -> str:
    """Why there is no such time zone; empty if there is."""
    if name in ("", LOCAL):
        return ""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a name may be too long for a file
        return f"unknown time zone {name}"
    return ""
