"""Slow-start batches have upstream's sizes."""

import asyncio

import pytest

from mockube.apimachinery.status import Forbidden
from mockube.client.wire import OutcomeUnknown
from mockube.controller_manager.control.executor import run_concurrently, slow_start
from tests.support.event_loop import yield_to_loop


class Batches:
    """Count the concurrent calls of each batch; things in `fails` fail."""

    def __init__(self, *fails, error=None):
        self.sizes = []
        self._fails = fails
        self._error = error or Forbidden("no")
        self._now = 0

    async def do(self, thing):
        self._now += 1
        await yield_to_loop(3)
        if self._now:
            self.sizes.append(self._now)
            self._now = 0
        if thing in self._fails:
            raise self._error


@pytest.mark.parametrize(
    ("count", "fails", "sizes"),
    [
        pytest.param(0, (), [], id="empty"),
        pytest.param(1, (), [1], id="one"),
        pytest.param(10, (), [1, 2, 4, 3], id="ten"),
        pytest.param(500, (), [1, 2, 4, 8, 16, 32, 64, 128, 245], id="a whole burst"),
        pytest.param(500, (0,), [1], id="the first fails"),
        pytest.param(500, (4,), [1, 2, 4], id="one of the third batch fails"),
        pytest.param(7, (5, 6), [1, 2, 4], id="two of the last fail"),
    ],
)
async def test_batches_double_until_an_error(count, fails, sizes):
    batches = Batches(*fails)
    error = await slow_start(range(count), batches.do)
    assert batches.sizes == sizes
    assert (error is not None) == bool(fails)


async def test_first_error_of_batch_is_raised():
    errors = {1: Forbidden("first"), 2: Forbidden("second")}

    async def do(thing):
        if thing in errors:
            raise errors[thing]

    assert await run_concurrently(range(4), do) is errors[1]


async def test_non_api_error_is_raised_after_batch_ends():
    ended = []

    async def do(thing):
        if thing == 0:
            raise OutcomeUnknown("lost")
        await yield_to_loop(3)
        ended.append(thing)

    with pytest.raises(OutcomeUnknown):
        await run_concurrently(range(3), do)
    assert ended == [1, 2]


async def test_cancellation_ends_all_of_batch():
    async def do(_):
        await asyncio.get_running_loop().create_future()

    running = asyncio.create_task(run_concurrently(range(3), do))
    await yield_to_loop(3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
