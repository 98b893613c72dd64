"""The clock of an in-process control plane: the machine's clock plus the time by which it was advanced.

When it is advanced, due callbacks run in order, each at its time, and their effects are awaited before the time advances
further. So leases are renewed, and nodes do not become unknown because an hour has passed at once.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from mockube.component_base.clock import RealClock, Timer, sleep_by_timer
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.timers import TimerHeap

LOG: Final = logging.getLogger(__name__)

MAX_STEP_SECONDS: Final = 2.0
"""Callbacks that are due within these seconds run in one step, because most of them are independent of each other."""
QUIET_TURNS: Final = 20
"""The number of event loop iterations without a request in progress after which no more effects are expected."""


class VirtualClock:
    """A clock for one event loop, in which one timer waits for the callback that is due next."""

    def __init__(self) -> None:
        self._real = RealClock()
        self._ahead = 0.0
        self._timers = TimerHeap()
        self._timer: Timer | None = None
        self._timer_due = 0.0

    def now(self) -> datetime:
        return self._real.now() + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        return self._real.monotonic() + self._ahead

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        scheduled = self._timers.add(self.monotonic() + max(delay, 0.0), callback)
        if self._timer is None or scheduled.due < self._timer_due:
            self._set_timer()
        return scheduled

    async def sleep(self, seconds: float) -> None:
        await sleep_by_timer(self, seconds)

    def step(self, maximum: float) -> float:
        """Advance to the next callback, by at least MAX_STEP_SECONDS and at most `maximum`; return the seconds.

        Callbacks that are due by then run, each at its time.
        """
        due, now = self._timers.peek(), self.monotonic()
        step = maximum if due is None else min(max(due.due - now, MAX_STEP_SECONDS), maximum)
        self._run_due(now + step)
        self._advance_to(now + step)
        return step

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._timers.peek()
        if due is not None:
            self._timer_due = due.due
            delay = max(due.due - self.monotonic(), 0.0)
            self._timer = self._real.call_later(delay, lambda: self._run_due(self.monotonic()))

    def _advance_to(self, time: float) -> None:
        self._ahead += max(time - self.monotonic(), 0.0)

    def _run_due(self, until: float) -> None:
        while (scheduled := self._timers.pop_due(until)) is not None:
            self._advance_to(scheduled.due)
            try:
                scheduled.run()
            except Exception:
                LOG.exception("A timer of the virtual clock failed; the others continue")
        self._set_timer()


async def advance_clock(clock: VirtualClock, seconds: float, is_busy: Callable[[], bool]) -> None:
    """Advance a clock by some seconds, step by step, and wait for the effects of each step."""
    await _wait_until_idle(is_busy)
    while seconds > 0:
        seconds -= clock.step(seconds)
        await _wait_until_idle(is_busy)


async def _wait_until_idle(is_busy: Callable[[], bool]) -> None:
    quiet_turns = 0
    while quiet_turns < QUIET_TURNS:
        await yield_to_loop()
        quiet_turns = 0 if is_busy() else quiet_turns + 1
