"""Work is cancelled at its deadline; work that finishes earlier is not."""

import asyncio

import pytest

from mockube.apimachinery.status import Timeout
from mockube.apiserver.request.limits import Deadlines
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop


class CountingClock(SteppedClock):
    """A clock that counts the timers it created."""

    timers = 0

    def call_later(self, delay, callback):
        self.timers += 1
        return super().call_later(delay, callback)


@pytest.fixture
def clock():
    return CountingClock()


@pytest.fixture
def deadlines(clock):
    return Deadlines(clock)


async def one():
    return 1


def endless_task(deadlines, seconds):
    return asyncio.create_task(deadlines.within(seconds, asyncio.Event().wait()))


async def test_work_within_deadline_returns_result(clock, deadlines):
    assert await deadlines.within(5.0, one()) == 1
    clock.advance(5.0)
    assert clock.next_due() is None


async def test_work_beyond_deadline_times_out(clock, deadlines):
    stopped = asyncio.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    task = asyncio.create_task(deadlines.within(5.0, work()))
    await yield_to_loop(2)
    clock.advance(5.0)
    with pytest.raises(Timeout) as late:
        await task
    assert stopped.is_set()
    assert late.value.status()["message"] == "Timeout: request did not complete within the allotted timeout"
    assert late.value.code == 504


async def test_each_work_times_out_at_its_own_deadline(clock, deadlines):
    tasks = {}
    for seconds in (5.0, 2.0, 9.0):
        tasks[seconds] = endless_task(deadlines, seconds)
        await yield_to_loop(2)
    late = []
    for second in range(10):
        late += [(second, seconds, type(task.exception())) for seconds, task in tasks.items() if task.done()]
        tasks = {seconds: task for seconds, task in tasks.items() if not task.done()}
        clock.advance(1.0)
        await yield_to_loop(2)
    assert late == [(seconds, seconds, Timeout) for seconds in (2.0, 5.0, 9.0)]


async def test_work_after_finished_work_times_out(clock, deadlines):
    await deadlines.within(5.0, one())
    clock.advance(3.0)
    task = endless_task(deadlines, 5.0)
    await yield_to_loop(2)
    clock.advance(4.0)
    await yield_to_loop(2)
    assert not task.done()
    clock.advance(1.0)
    with pytest.raises(Timeout):
        await task


async def test_many_deadlines_share_one_timer(clock, deadlines):
    for _ in range(100):
        await deadlines.within(5.0, one())
    assert clock.timers == 1


async def test_external_cancellation_is_no_timeout(deadlines):
    task = endless_task(deadlines, 5.0)
    await yield_to_loop(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_errors_pass_through_deadline(deadlines):
    async def work():
        raise KeyError("x")

    with pytest.raises(KeyError):
        await deadlines.within(5.0, work())
