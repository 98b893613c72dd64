"""Limits of requests: their number in flight and their time.

Long-running requests such as watches have neither limit; a snapshot counts as in flight, but has no deadline.
"""

import asyncio
import math
from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from mockube.apimachinery import clock_readings, status
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.groups import CONTROL
from mockube.apiserver.request_info import CONNECT_SUBRESOURCES, RequestInfo
from mockube.apiserver.user import MASTERS, User
from mockube.component_base.clock import Clock, Timer

from .request import Request

T = TypeVar("T")

OUT_OF_TIME = "request did not complete within the allotted timeout"
LONG_VERBS = frozenset({"watch", "proxy"})
LONG_PATHS: Final = "/mockube/"
"""Requests below these paths have no deadline."""
READS = frozenset({"get", "list", "watch"})
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def is_long_running(info: RequestInfo) -> bool:
    """Return whether a request may stay open for hours: it does not count as in flight, and has no deadline."""
    if not info.is_resource:
        return info.path == clock_readings.PATH
    return info.verb in LONG_VERBS or info.subresource in CONNECT_SUBRESOURCES


def has_no_deadline(info: RequestInfo) -> bool:
    """Return whether a request counts as in flight, but has no deadline."""
    if info.is_resource:
        return info.group == CONTROL and (info.subresource == "advance" or info.resource == "forks")
    return info.path.startswith(LONG_PATHS)


def ends_with_client(info: RequestInfo) -> bool:
    """Return whether a request without a deadline has no use any more when its client has disconnected."""
    return info.is_resource and has_no_deadline(info)


class InFlight:
    """Limits the requests in flight, as --max-requests-inflight does."""

    def __init__(self, *, reads: int, writes: int) -> None:
        """Limit the reads and the writes in flight; 0 means no limit."""
        self._limits = {True: reads, False: writes}
        self._counts = {True: 0, False: 0}

    def enter(self, verb: str, user: User, group: str = "") -> bool:
        """Count a request, and return whether it is within the limit; `leave` must follow.

        Members of system:masters are not limited: they may have to repair the server. Requests for the group of control are
        not, either: they may have to remove a fault.
        """
        reads = verb in READS
        limit = self._limits[reads]
        is_full = limit and self._counts[reads] >= limit
        if is_full and MASTERS not in user.groups and group != CONTROL:
            return False
        self._counts[reads] += 1
        return True

    def count(self, verb: str) -> int:
        """Return the number of reads or writes in flight."""
        return self._counts[verb in READS]

    def leave(self, verb: str) -> None:
        self._counts[verb in READS] -= 1


class Deadlines:
    """Cancels requests at their deadlines. Few are late, so all share one timer, which is set to the earliest deadline."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[asyncio.Task[object], float] = {}
        """The deadline of each running task."""
        self._timer: Timer | None = None
        self._timer_due = math.inf
        """The time of the timer: at or before the earliest deadline."""

    async def within(self, seconds: float, work: Awaitable[T], request: Request | None = None) -> T:
        """Return the result of the work, or cancel it and raise Timeout; a write that was sent may still happen.

        The request is marked as terminated if all of its work is late.
        """
        task = asyncio.current_task()
        assert task is not None
        due = self._due[task] = self._clock.monotonic() + seconds
        if due < self._timer_due:
            self._set_timer(due)
        try:
            return await work
        except asyncio.CancelledError:
            if task in self._due or task.uncancel() > 0:
                raise
            if request is not None:
                request.is_terminated = True
            raise status.timeout(OUT_OF_TIME, 0) from None
        finally:
            self._due.pop(task, None)

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._clock.call_later(due - self._clock.monotonic(), self._on_timer)

    def _on_timer(self) -> None:
        now, self._timer, self._timer_due = self._clock.monotonic(), None, math.inf
        for task in [task for task, due in self._due.items() if due <= now]:
            del self._due[task]
            task.cancel()
        if self._due:
            self._set_timer(min(self._due.values()))


def request_timeout(timeout_values: Sequence[str], maximum: float) -> float:
    """Return the seconds that a request may take: those of `?timeout=`, at most `maximum`."""
    if not timeout_values or not timeout_values[0]:
        return maximum
    try:
        seconds = parse_duration(timeout_values[0]) / 1e9
    except DurationError as error:
        raise status.BadRequest(f"invalid timeout specified in the request URL - {error}") from error
    return seconds if 0 < seconds < maximum else maximum
