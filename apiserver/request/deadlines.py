"""Stops what takes too long. Requests are many and hardly ever late, so they share one timer, which waits for the first."""

import asyncio
import math
from collections.abc import Awaitable
from typing import TypeVar

from mockube.apimachinery import status
from mockube.apimachinery.clock import Clock, Timer

T = TypeVar("T")

OUT_OF_TIME = "request did not complete within the allotted timeout"


class Deadlines:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[asyncio.Task[object], float] = {}
        """When each is late that is at work and has not been stopped."""
        self._timer: Timer | None = None
        self._rings = math.inf
        """When the timer does: not after the first is due, but perhaps before, if that one was done in time."""

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """What the work comes to, or Timeout: it is stopped, though what it has begun may be done all the same."""
        task = asyncio.current_task()
        assert task is not None
        due = self._due[task] = self._clock.monotonic() + seconds
        if due < self._rings:
            self._set(due)
        try:
            return await work
        except asyncio.CancelledError:
            if task in self._due or task.uncancel() > 0:
                raise
            raise status.timeout(OUT_OF_TIME, 0) from None
        finally:
            self._due.pop(task, None)

    def _set(self, rings: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings = rings
        self._timer = self._clock.call_later(rings - self._clock.monotonic(), self._ring)

    def _ring(self) -> None:
        now, self._timer, self._rings = self._clock.monotonic(), None, math.inf
        for task in [task for task, due in self._due.items() if due <= now]:
            del self._due[task]
            task.cancel()
        if self._due:
            self._set(min(self._due.values()))
