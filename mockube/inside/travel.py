"""The clock of a control plane inside: the machine's own, until somebody puts it forward.

Whatever falls due on the way happens in its order, each at its time, and all that comes of it is waited for before time
goes on: leases are renewed, so that nodes are not thought dead because an hour has passed at once.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from apimachinery.clock import RealClock, Timer
from controller_manager.runtime.turn import turn

CANCELLED: Final = 1000
"""Alarms that are kept though they were cancelled, before all of them are thrown away."""
STRIDE: Final = 2.0
"""Seconds: what falls due within so many is waited for together, as most of it has nothing to do with the rest."""
QUIET_TURNS: Final = 20
"""Turns of the event loop without a request under way after which nothing more comes of what fell due."""


class _Alarm:
    """Ordered by due time, then by the order in which they were set."""

    __slots__ = ("callback", "clock", "due", "number")

    def __init__(self, clock: "TravelClock", due: float, number: int, callback: Callable[[], None]) -> None:
        self.clock = clock
        self.due = due
        self.number = number
        self.callback: Callable[[], None] | None = callback

    def __lt__(self, other: "_Alarm") -> bool:
        return (self.due, self.number) < (other.due, other.number)

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self.clock.forget_one()


class TravelClock:
    """Belongs to one event loop, in which one timer waits for the alarm that is due next."""

    def __init__(self) -> None:
        self._real = RealClock()
        self._ahead = 0.0
        self._alarms: list[_Alarm] = []
        self._numbers = itertools.count()
        self._cancelled = 0
        self._timer: Timer | None = None
        self._rings = 0.0

    def now(self) -> datetime:
        return self._real.now() + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        return self._real.monotonic() + self._ahead

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        alarm = _Alarm(self, self.monotonic() + max(delay, 0.0), next(self._numbers), callback)
        heapq.heappush(self._alarms, alarm)
        if self._timer is None or alarm.due < self._rings:
            self._wind()
        return alarm

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        timer = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def put_forward(self, most: float) -> float:
        """To when the next alarm is due, or a stride, but by no more seconds than that; answers by how many.

        The alarms up to then ring, each at its time.
        """
        due, now = self._next(), self.monotonic()
        step = most if due is None else min(max(due.due - now, STRIDE), most)
        self._ring(now + step)
        self._pass_until(now + step)
        return step

    def forget_one(self) -> None:
        self._cancelled += 1
        if self._cancelled > CANCELLED:
            self._alarms = [alarm for alarm in self._alarms if alarm.callback is not None]
            heapq.heapify(self._alarms)
            self._cancelled = 0

    def _next(self) -> _Alarm | None:
        while self._alarms and self._alarms[0].callback is None:
            heapq.heappop(self._alarms)
            self._cancelled -= 1
        return self._alarms[0] if self._alarms else None

    def _wind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._next()
        if due is not None:
            self._rings = due.due
            delay = max(due.due - self.monotonic(), 0.0)
            self._timer = self._real.call_later(delay, lambda: self._ring(self.monotonic()))

    def _pass_until(self, time: float) -> None:
        self._ahead += max(time - self.monotonic(), 0.0)

    def _ring(self, until: float) -> None:
        while (alarm := self._next()) is not None and alarm.due <= until:
            heapq.heappop(self._alarms)
            self._pass_until(alarm.due)
            callback, alarm.callback = alarm.callback, None
            if callback is not None:
                callback()
        self._wind()


async def travel(clock: TravelClock, seconds: float, is_busy: Callable[[], bool]) -> None:
    """Let so many seconds pass at once, stride by stride; after each, all is waited for that comes of it."""
    await _quiet(is_busy)
    while seconds > 0:
        seconds -= clock.put_forward(seconds)
        await _quiet(is_busy)


async def _quiet(is_busy: Callable[[], bool]) -> None:
    quiet = 0
    while quiet < QUIET_TURNS:
        await turn()
        quiet = 0 if is_busy() else quiet + 1
