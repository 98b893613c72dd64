"""The time that a command on the clock sees, which is a little behind the clock while it makes up for sleeps that took too long."""

from datetime import datetime, timedelta
from typing import Final

from mockube.component_base.clock import MAX_STEP_SECONDS, Clock

_MAX_CAUGHT_UP: Final = 4
"""The number of sleeps that a command makes up for in a step of an advance: one that sleeps for milliseconds would make up for hundreds."""


class CommandTime:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._behind = 0.0
        """How many seconds the command is behind the clock: a part of a step of an advance, and what the machine needs to wake it up."""
        self._caught_up = 0
        """The number of sleeps that were over when they began, since the last other one."""
        self._sleep_began = 0.0

    def now(self) -> datetime:
        return self._clock.now() - timedelta(seconds=self._behind)

    def catch_up(self) -> None:
        """Let the command be at the present: it has waited for something from outside."""
        self._behind = 0.0

    def begin_sleep(self, seconds: float) -> float:
        """Return how long a sleep takes yet: nothing if it is over at the present time."""
        self._sleep_began = self._clock.monotonic() - self._behind
        remaining = seconds - self._behind
        self._caught_up = 0 if remaining > 0 else self._caught_up + 1
        return remaining

    def interrupt_sleep(self) -> float:
        """Let the command be at the present, and return how long it has slept."""
        self.catch_up()
        return self._clock.monotonic() - self._sleep_began

    def end_sleep(self, seconds: float, clock: Clock) -> None:
        """Let the command be where its sleep ends by a clock; one that sleeps by another clock is at the present."""
        self.catch_up()
        if clock is self._clock and self._caught_up < _MAX_CAUGHT_UP:
            passed = self._clock.monotonic() - self._sleep_began
            self._behind = min(max(passed - seconds, 0.0), MAX_STEP_SECONDS)
