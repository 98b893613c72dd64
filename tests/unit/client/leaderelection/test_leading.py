"""Work without leader election ends like work with a lease; the lease is tested against a real server."""

import asyncio

import pytest

from mockube.client.leaderelection.elector import run_without_lease
from tests.support.event_loop import until, yield_to_loop


class SlowWork:
    """Work that has a current key when it is cancelled; `in_hand` finishes the key."""

    def __init__(self):
        self.in_hand = asyncio.Event()
        self.began = False
        self.ended = False

    async def work(self):
        self.began = True
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self.in_hand.wait()
            self.ended = True


@pytest.fixture
def slow_work():
    return SlowWork()


@pytest.fixture
async def cancelled_task(slow_work, clock):
    task = asyncio.create_task(run_without_lease(slow_work.work, clock=clock, shutdown_timeout=10.0))
    await until(lambda: slow_work.began)
    task.cancel()
    await yield_to_loop(5)
    assert not task.done()
    return task


async def test_cancelled_work_finishes_current_keys(cancelled_task, slow_work, clock):
    slow_work.in_hand.set()
    with pytest.raises(asyncio.CancelledError):
        await cancelled_task
    assert slow_work.ended
    assert clock.next_due() is None


async def test_cancelled_work_has_time_limit(cancelled_task, slow_work, clock):
    clock.advance(9)
    await yield_to_loop(5)
    assert not cancelled_task.done()
    clock.advance(1)
    with pytest.raises(asyncio.CancelledError):
        await cancelled_task
    assert not slow_work.ended


async def test_error_of_work_is_raised(clock):
    async def fail():
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        await run_without_lease(fail, clock=clock, shutdown_timeout=10.0)


async def test_second_cancellation_cancels_current_keys(cancelled_task, slow_work):
    cancelled_task.cancel()
    await asyncio.gather(cancelled_task, return_exceptions=True)
    assert cancelled_task.cancelled()
    assert not slow_work.ended
    assert asyncio.all_tasks() == {asyncio.current_task()}
