"""The execution of a command in the time of the cluster."""

import asyncio
from itertools import count

import pytest

from mockube.component_base.clock import ClusterClock, QuietTurns, SteppedClock, advance_in_steps
from mockube.container_runtime.simulated import work_turns
from mockube.container_runtime.simulated.client_pace import ClientPace
from mockube.container_runtime.simulated.execution import run_to_end
from mockube.container_runtime.simulated.shell.process import CommandStart, Sleep
from tests.support.event_loop import yield_to_loop

HOUR = 3600.0


class NoInput:
    stdin = None


@pytest.mark.parametrize(
    ("is_routine", "checks"),
    [
        pytest.param(True, 2, id="check that may be late"),
        pytest.param(False, 121, id="any other"),
    ],
)
async def test_advance_leaps_over_the_interval_of_a_check(is_routine, checks):
    clock, seen = ClusterClock(SteppedClock()), []

    def check():
        while True:
            seen.append(clock.monotonic())
            yield Sleep(30.0, is_routine=is_routine)

    checking = asyncio.create_task(run_to_end(check(), NoInput(), ClientPace(clock), None))
    await yield_to_loop(5)
    await advance_in_steps(clock, HOUR, QuietTurns(lambda: False), lambda: True)
    assert (len(seen), seen[-1]) == (checks, HOUR)
    checking.cancel()


async def test_commands_that_take_longer_than_most_share_the_loop_by_the_time_they_take(monkeypatch):
    monkeypatch.setattr(work_turns, "thread_time", count(step=work_turns.SECONDS / 4).__next__)
    steps = []

    def work():
        while True:
            steps.append(None)
            yield CommandStart()

    working = asyncio.create_task(run_to_end(work(), NoInput(), ClientPace(SteppedClock()), None))
    await yield_to_loop(5)
    for _ in range(10):
        before = len(steps)
        await yield_to_loop()
        assert len(steps) - before <= 4
    assert steps
    working.cancel()
