"""Time, injected.

Logic takes a `Clock` and never reads one of its own, so that a test, and one day the whole control plane, can run on
a clock that somebody steps. This is the only module that may touch the wall clock or sleep.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Timer(Protocol):
    """Something that will happen, unless it is cancelled first."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> datetime:
        """The time of day, in UTC: for what people and objects are told."""

    def monotonic(self) -> float:
        """Seconds since some start, never going back: for deadlines and durations."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call back in the running event loop after `delay` seconds."""

    async def sleep(self, seconds: float) -> None: ...


class RealClock:
    """The machine's own clock and the event loop's own timers."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Alarm:
    """A stepped clock's timer. Ordered by due time, then by the order in which they were set."""

    __slots__ = ("callback", "due", "number")

    def __init__(self, due: float, number: int, callback: Callable[[], None]) -> None:
        self.due = due
        self.number = number
        self.callback: Callable[[], None] | None = callback

    def __lt__(self, other: "_Alarm") -> bool:
        return (self.due, self.number) < (other.due, other.number)

    def cancel(self) -> None:
        self.callback = None


class SteppedClock:
    """A clock that stands still until it is told to advance; what falls due then happens in order, each at its time."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._alarms: list[_Alarm] = []
        self._numbers = itertools.count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        alarm = _Alarm(self._elapsed + max(delay, 0.0), next(self._numbers), callback)
        heapq.heappush(self._alarms, alarm)
        return alarm

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        timer = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once. Tasks that were asleep run when the event loop next turns."""
        until = self._elapsed + seconds
        while self._alarms and self._alarms[0].due <= until:
            alarm = heapq.heappop(self._alarms)
            self._elapsed = max(self._elapsed, alarm.due)
            if alarm.callback is not None:
                alarm.callback()
        self._elapsed = until

    def next_due(self) -> float | None:
        """Seconds until something happens by itself, or None if nothing will."""
        while self._alarms and self._alarms[0].callback is None:
            heapq.heappop(self._alarms)
        return self._alarms[0].due - self._elapsed if self._alarms else None
