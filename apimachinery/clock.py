"""Time, injected.

Logic takes a `Clock` and never reads one of its own, so that a test, and one day the whole control plane, can run on
a clock that the test steps. This is the only module that may touch the wall clock or sleep.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from mockube.apimachinery.alarms import Alarms


class Timer(Protocol):
    """Something that will happen, unless it is cancelled first."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the time of day in UTC: for objects and messages."""

    def monotonic(self) -> float:
        """Seconds since some start, never going back: for deadlines and durations."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call back in the running event loop after `delay` seconds."""

    async def sleep(self, seconds: float) -> None: ...


async def sleep_by_timer(clock: Clock, seconds: float) -> None:
    """Sleep with the timers of a clock."""
    woken = asyncio.Event()
    timer = clock.call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()


class RealClock:
    """The machine's own clock and the event loop's own timers."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    monotonic = staticmethod(time.monotonic)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SteppedClock:
    """A clock that stands still until `advance` is called; then due callbacks run in order, each at its time."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._alarms = Alarms()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._alarms.set(self._elapsed + max(delay, 0.0), callback)

    async def sleep(self, seconds: float) -> None:
        await sleep_by_timer(self, seconds)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once. Tasks that were asleep run when the event loop next turns."""
        until = self._elapsed + seconds
        while (alarm := self._alarms.pop(until)) is not None:
            self._elapsed = max(self._elapsed, alarm.due)
            alarm.ring()
        self._elapsed = until

    def next_due(self) -> float | None:
        """Seconds until something happens by itself, or None if nothing will."""
        alarm = self._alarms.next()
        return None if alarm is None else alarm.due - self._elapsed
