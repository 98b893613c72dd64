"""The execution of a command in the time of the cluster."""

import asyncio

import pytest

from mockube.component_base.clock import ClusterClock, QuietTurns, SteppedClock, advance_in_steps
from mockube.container_runtime.simulated.client_pace import ClientPace
from mockube.container_runtime.simulated.execution import run_to_end
from mockube.container_runtime.simulated.shell.process import Sleep
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
