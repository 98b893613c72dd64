"""The validation of schedules of CronJobs, such as `*/5 * * * *`, and of their time zones."""

import re
from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import cron, errors
from mockube.apimachinery.cron import ScheduleError
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path

_ZONE_PART: Final = re.compile(r"(?!-)[A-Za-z.\-_0-9+]{1,14}")


def check_time_zone(zone: str, path: Path) -> Iterator[FieldError]:
    """Check that the time zone exists and is not `Local`."""
    if not zone:
        yield errors.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or not _ZONE_PART.fullmatch(part):
            yield errors.invalid(path, zone, f"unknown time zone {zone}")
            return
    if zone.lower() == cron.LOCAL.lower():
        problem = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield errors.invalid(path, zone, problem)
    if problem := cron.zone_problem(zone):
        yield errors.invalid(path, zone, problem)


def check_schedule(schedule: str, zone: str | None, path: Path, *, had_zone: bool) -> Iterator[FieldError]:
    """Check the schedule. With `had_zone`, the old schedule contains a time zone, and the new one may, too."""
    try:
        cron.parse(schedule)
    except ScheduleError as error:
        yield errors.invalid(path, schedule, str(error))
    if "TZ" not in schedule:
        return
    if not had_zone:
        problem = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield errors.invalid(path, schedule, problem)
    elif zone is not None:
        problem = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield errors.invalid(path, schedule, problem)
