"""The next start of a CronJob, and its missed starts."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from mockube.apimachinery import cron, gotext, meta
from mockube.apimachinery.cron import Schedule, ScheduleError
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree

_PADDING: Final = timedelta(milliseconds=100)
"""The time added to each wait, because clocks differ a little."""
_MAX_MISSED_STARTS: Final = 100
"""Upstream warns of more, because a clock may be wrong (pkg/controller/cronjob/utils.go)."""


class MissedStarts(NamedTuple):
    """The starts that were due since the last start."""

    since: datetime
    latest: datetime | None = None
    number: int = 0
    """The approximate number of missed starts; 0 also for one."""

    @property
    def are_too_many(self) -> bool:
        return self.number > _MAX_MISSED_STARTS


def schedule_of(cron_job: ReadOnlyTree) -> Schedule:
    """Return the parsed schedule in its time zone; raise `ScheduleError` if it is invalid."""
    text, zone = cron_job["spec"]["schedule"], cron_job["spec"].get("timeZone")
    if has_zone_in_schedule(cron_job) or zone is None or cron.zone_problem(zone):
        return cron.parse(text)
    return cron.parse(f"TZ={zone} {text}")


def has_zone_in_schedule(cron_job: ReadOnlyTree) -> bool:
    return "TZ" in cron_job["spec"]["schedule"]


def unsupported_message(cron_job: ReadOnlyTree) -> str:
    """Return the message for a schedule that contains a time zone."""
    quoted = gotext.quote(cron_job["spec"]["schedule"])
    page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
    return f"CRON_TZ or TZ used in schedule {quoted} is not officially supported, see {page} for more details"


def missed_starts(
    cron_job: ReadOnlyTree, schedule: Schedule, now: datetime, *, within_deadline: bool
) -> MissedStarts:
    """Return the starts that were due and did not happen; raise `ScheduleError` for a schedule without any time."""
    since = _last_start(cron_job) or now
    seconds = cron_job["spec"].get("startingDeadlineSeconds")
    if within_deadline and seconds is not None:
        since = max(since, after(now, -span_of(seconds)))
    first = schedule.next(since)
    second = schedule.next(first)
    if now < first:
        return MissedStarts(since)
    if now < second:
        return MissedStarts(since, first)
    interval = round((second - first).total_seconds())
    if interval < 1:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    count = int((now - first).total_seconds()) // interval + 1
    latest, time = None, schedule.next(first + timedelta(seconds=(count - 2) * interval))
    while cron.NEVER < time <= now:
        latest, time = time, schedule.next(time)
    return MissedStarts(since, latest, count)


def until_next_start(cron_job: ReadOnlyTree, schedule: Schedule, now: datetime) -> timedelta:
    """Return the time until the next start."""
    try:
        missed_times = missed_starts(cron_job, schedule, now, within_deadline=False)
    except ScheduleError:
        base = now
    else:
        base = missed_times.latest or (now if missed_times.number else missed_times.since)
    following = schedule.next(base)
    if following == cron.NEVER:
        return timedelta.max
    return max(_PADDING, following + _PADDING - now)


def _last_start(cron_job: ReadOnlyTree) -> datetime | None:
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    return parse_time(last) if last else meta.creation_timestamp(cron_job)
