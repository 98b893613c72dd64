"""A replay of a session that runs over a time of its CronJob's schedule runs once more."""

from datetime import UTC, datetime

import pytest

from mockube.component_base.clock import SteppedClock
from tests.support.recorded.schedule_periods import replay_between_runs


@pytest.mark.parametrize(
    ("second", "takes", "replays"),
    [(0, 299, 1), (0, 300, 2), (298, 1, 1), (298, 2, 2), (298, 40, 2)],
)
def test_replay_over_a_time_of_the_schedule_runs_once_more(second, takes, replays):
    clock = SteppedClock(datetime(2030, 1, 1, 12, 5, tzinfo=UTC))
    clock.advance(second)
    results = []

    def replay():
        clock.advance(takes)
        results.append(clock.now())
        return len(results)

    assert replay_between_runs(replay, clock) == replays
    assert len(results) == replays
