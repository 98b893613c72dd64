"""Work that is stopped when its time is over, and work that is not."""

import asyncio

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.apimachinery.status import Timeout
from mockube.apiserver.request.limits import Deadlines
from tests.support.turns import turns


class CountingClock(SteppedClock):
    """Knows how many timers were asked for."""

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


def for_ever(deadlines, seconds):
    return asyncio.create_task(deadlines.within(seconds, asyncio.Event().wait()))


async def test_work_that_is_done_in_time_is_answered(clock, deadlines):
    assert await deadlines.within(5.0, one()) == 1
    clock.advance(5.0)
    assert clock.next_due() is None


async def test_work_that_takes_too_long_is_stopped(clock, deadlines):
    stopped = asyncio.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    task = asyncio.create_task(deadlines.within(5.0, work()))
    await turns(2)
    clock.advance(5.0)
    with pytest.raises(Timeout) as late:
        await task
    assert stopped.is_set()
    assert late.value.status()["message"] == "Timeout: request did not complete within the allotted timeout"
    assert late.value.code == 504


async def test_each_is_stopped_in_its_own_time(clock, deadlines):
    tasks = {}
    for seconds in (5.0, 2.0, 9.0):
        tasks[seconds] = for_ever(deadlines, seconds)
        await turns(2)
    late = []
    for second in range(10):
        late += [(second, seconds) for seconds, task in tasks.items() if task.done()]
        tasks = {seconds: task for seconds, task in tasks.items() if not task.done()}
        clock.advance(1.0)
        await turns(2)
    assert late == [(2, 2.0), (5, 5.0), (9, 9.0)]


async def test_who_comes_when_the_first_is_done_is_stopped_in_time(clock, deadlines):
    await deadlines.within(5.0, one())
    clock.advance(3.0)
    task = for_ever(deadlines, 5.0)
    await turns(2)
    clock.advance(4.0)
    await turns(2)
    assert not task.done()
    clock.advance(1.0)
    with pytest.raises(Timeout):
        await task


async def test_many_share_one_timer(clock, deadlines):
    for _ in range(100):
        await deadlines.within(5.0, one())
    assert clock.timers == 1


async def test_who_is_cancelled_by_others_is_not_late(deadlines):
    task = for_ever(deadlines, 5.0)
    await turns(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_failures_pass_through(deadlines):
    async def work():
        raise KeyError("x")

    with pytest.raises(KeyError):
        await deadlines.within(5.0, work())
