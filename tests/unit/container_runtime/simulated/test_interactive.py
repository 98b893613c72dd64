"""A run of a container on the clock: its end for those that attach, and the time that its command sees."""

import asyncio
from datetime import timedelta

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.output import OUTPUT_END
from mockube.container_runtime.runs import ContainerNotFound
from mockube.container_runtime.simulated.interactive import InteractiveRun
from tests.support.event_loop import yield_to_loop


def test_attach_to_ended_run_is_refused():
    async def outcome():
        run = InteractiveRun({"name": "c", "stdin": True}, 0, SteppedClock(), lambda: None)
        with run.listen() as output:
            await run.write(1, b"hello\n")
            run.end(0)
            assert [await output.get(), await output.get()] == [(1, b"hello\n"), OUTPUT_END]
        with run.listen():
            pass

    with pytest.raises(ContainerNotFound) as refused:
        asyncio.run(outcome())
    assert str(refused.value) == 'container not found ("c")'


async def slept(run, seconds, clock, *, advance, signal=False):
    """Return what a sleep of the command returned while the clock has advanced, perhaps in one step that is too long."""
    run.task = asyncio.create_task(run.sleep(seconds, clock))
    await yield_to_loop(3)
    clock.advance(advance)
    if signal:
        run.wake()
    return await run.task


async def test_sleep_begins_at_the_moment_that_the_command_has_reached():
    clock = SteppedClock()
    run, begin = InteractiveRun({"name": "c"}, 0, clock, lambda: None), clock.now()
    assert await slept(run, 0.6, clock, advance=2.0) is None
    assert run.now() == begin + timedelta(seconds=0.6)
    assert await slept(run, 1.0, clock, advance=0.0) is None
    assert run.now() == begin + timedelta(seconds=1.6)
    assert await slept(run, 3.0, clock, advance=2.6) is None
    assert run.now() == begin + timedelta(seconds=4.6)
    run.catch_up()
    assert run.now() == clock.now()


async def test_command_is_at_the_present_after_a_signal():
    clock = SteppedClock()
    run = InteractiveRun({"name": "c"}, 0, clock, lambda: None)
    await slept(run, 0.5, clock, advance=2.0)
    assert await slept(run, 9.0, clock, advance=1.0, signal=True) == 2.5
    assert run.now() == clock.now()


async def test_command_makes_up_for_a_few_sleeps():
    clock = SteppedClock()
    run, begin = InteractiveRun({"name": "c"}, 0, clock, lambda: None), clock.now()
    await slept(run, 0.1, clock, advance=9.0)
    assert run.now() == begin + timedelta(seconds=7), "no more than a step"
    for _ in range(4):
        await slept(run, 0.1, clock, advance=0.0)
    assert run.now() == clock.now()
