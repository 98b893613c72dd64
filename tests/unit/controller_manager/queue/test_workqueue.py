"""Work queue: waiting and cancelled workers, and close; a property test covers the rest."""

import asyncio

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.controller_manager.metrics.queues import OneQueue
from mockube.controller_manager.queue.workqueue import WorkQueue
from tests.support.turns import turns


@pytest.fixture
def queue():
    return WorkQueue(OneQueue(SteppedClock()))


async def test_keys_are_taken_in_order_of_addition(queue):
    for key in "abacb":
        queue.add(key)
    assert [await queue.take() for _ in range(len(queue))] == ["a", "b", "c"]


async def test_key_added_while_processed_is_requeued_when_done(queue):
    queue.add("a")
    await queue.take()
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.take() == "a"


async def test_waiting_worker_takes_next_key(queue):
    taking = asyncio.create_task(queue.take())
    await turns(2)
    queue.add("a")
    assert await taking == "a"


async def test_cancelled_worker_loses_no_key(queue):
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await turns(2)
    queue.add("a")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert await second == "a"


async def test_cancelled_waiting_worker_is_removed(queue):
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await turns(2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    queue.add("a")
    assert await second == "a"


async def test_closed_queue_is_empty_and_refuses_keys(queue):
    waiting = asyncio.create_task(queue.take())
    await turns(2)
    queue.close()
    assert await waiting is None
    queue.add("a")
    assert len(queue) == 0
    assert await queue.take() is None


async def test_closed_queue_returns_no_pending_keys(queue):
    queue.add("a")
    queue.close()
    assert await queue.take() is None


async def test_key_can_be_done_after_close(queue):
    queue.add("a")
    key = await queue.take()
    queue.add("a")
    queue.close()
    queue.done(key)
    assert len(queue) == 0
