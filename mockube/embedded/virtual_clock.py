"""The clock of an embedded control plane: the machine's own, until it is advanced.

Everything that falls due is done in order, each at its time, and its effects are awaited before the time advances:
leases are renewed, so that nodes do not become unknown because an hour has passed at once.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery.alarms import Alarms
from mockube.apimachinery.clock import RealClock, Timer, sleep_by_timer
from mockube.controller_manager.supervision import yield_to_loop

LOG: Final = logging.getLogger(__name__)

MAX_STEP_SECONDS: Final = 2.0
"""Seconds: what falls due within so many is waited for together, as most of it has nothing to do with the rest."""
QUIET_TURNS: Final = 20
"""Iterations of the event loop without a request in progress after which no more effects are expected."""


class VirtualClock:
    """Belongs to one event loop, in which one timer waits for the alarm that is due next."""

    def __init__(self) -> None:
        self._real = RealClock()
        self._ahead = 0.0
        self._alarms = Alarms()
        self._timer: Timer | None = None
        self._rings = 0.0

    def now(self) -> datetime:
        return self._real.now() + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        return self._real.monotonic() + self._ahead

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        alarm = self._alarms.set(self.monotonic() + max(delay, 0.0), callback)
        if self._timer is None or alarm.due < self._rings:
            self._set_timer()
        return alarm

    async def sleep(self, seconds: float) -> None:
        await sleep_by_timer(self, seconds)

    def put_forward(self, maximum: float) -> float:
        """Advance to the next alarm, or by a stride, but at most by so many seconds; return by how many.

        Alarms up to then ring, each at its time.
        """
        due, now = self._alarms.next(), self.monotonic()
        step = maximum if due is None else min(max(due.due - now, MAX_STEP_SECONDS), maximum)
        self._ring(now + step)
        self._pass_until(now + step)
        return step

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._alarms.next()
        if due is not None:
            self._rings = due.due
            delay = max(due.due - self.monotonic(), 0.0)
            self._timer = self._real.call_later(delay, lambda: self._ring(self.monotonic()))

    def _pass_until(self, time: float) -> None:
        self._ahead += max(time - self.monotonic(), 0.0)

    def _ring(self, until: float) -> None:
        while (alarm := self._alarms.pop(until)) is not None:
            self._pass_until(alarm.due)
            try:
                alarm.ring()
            except Exception:
                LOG.exception("A timer of the virtual clock failed; the others continue")
        self._set_timer()


async def advance_clock(clock: VirtualClock, seconds: float, is_busy: Callable[[], bool]) -> None:
    """Advance by so many seconds, stride by stride, and wait for the effects of each stride."""
    await _wait_until_idle(is_busy)
    while seconds > 0:
        seconds -= clock.put_forward(seconds)
        await _wait_until_idle(is_busy)


async def _wait_until_idle(is_busy: Callable[[], bool]) -> None:
    quiet = 0
    while quiet < QUIET_TURNS:
        await yield_to_loop()
        quiet = 0 if is_busy() else quiet + 1
