"""The injected time: the protocol of clocks, the real clock and a clock for tests.

Code receives a `Clock` as an argument, so that it can run on a clock that a test advances. This is the only module that
may read the wall clock or sleep.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from .timers import TimerHeap


class Timer(Protocol):
    """A scheduled callback that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A source of time and timers."""

    def now(self) -> datetime:
        """Return the current date and time in UTC, for objects and messages."""

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start, which never decrease, for deadlines and durations."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Schedule a callback in the running event loop after `delay` seconds."""

    async def sleep(self, seconds: float) -> None: ...


async def sleep_by_timer(clock: Clock, seconds: float) -> None:
    """Sleep by means of a timer of the clock."""
    elapsed = asyncio.Event()
    timer = clock.call_later(seconds, elapsed.set)
    try:
        await elapsed.wait()
    finally:
        timer.cancel()


class RealClock:
    """The machine's clock and the event loop's timers."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    monotonic = staticmethod(time.monotonic)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SteppedClock:
    """A clock that stands still until `advance` is called, which runs the due callbacks in order, each at its time."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._timers = TimerHeap()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._timers.add(self._elapsed + max(delay, 0.0), callback)

    async def sleep(self, seconds: float) -> None:
        await sleep_by_timer(self, seconds)

    def advance(self, seconds: float) -> None:
        """Advance the clock and run the due callbacks. Sleeping tasks resume in the next iteration of the event loop."""
        until = self._elapsed + seconds
        while (scheduled := self._timers.pop_due(until)) is not None:
            self._elapsed = max(self._elapsed, scheduled.due)
            scheduled.run()
        self._elapsed = until

    def next_due(self) -> float | None:
        """Return the seconds until the next callback is due, or None if there is none."""
        scheduled = self._timers.peek()
        return None if scheduled is None else scheduled.due - self._elapsed
