"""Replays that must not run over a time of a CronJob's schedule, because their recordings show no run of it."""

from collections.abc import Callable
from typing import TypeVar

from mockube.component_base.clock import Clock

SCHEDULE = 300
"""Seconds between two runs of a session's CronJob (`*/5 * * * *`), which was recorded between them."""
Result = TypeVar("Result")


def replay_between_runs(replay: Callable[[], Result], clock: Clock) -> Result:
    """Return the result of a replay; one that has run over a time of the schedule runs once more, far from the next one."""
    period = _period(clock)
    result = replay()
    return replay() if _period(clock) > period else result


def _period(clock: Clock) -> int:
    return int(clock.now().timestamp() // SCHEDULE)
