"""What the property test of the queue cannot see: workers that wait, that are cancelled, and a queue that is closed."""

import asyncio

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.controller_manager.metrics.queues import OneQueue
from mockube.controller_manager.queue.workqueue import WorkQueue
from tests.support.turns import turns


@pytest.fixture
def queue():
    return WorkQueue(OneQueue(SteppedClock()))


async def test_keys_come_in_the_order_in_which_they_were_first_wanted(queue):
    for key in "abacb":
        queue.add(key)
    assert [await queue.take() for _ in range(len(queue))] == ["a", "b", "c"]


async def test_a_key_that_is_wanted_while_it_is_worked_on_comes_again_when_that_is_done(queue):
    queue.add("a")
    await queue.take()
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.take() == "a"


async def test_a_worker_that_waits_is_given_the_next_key(queue):
    taking = asyncio.create_task(queue.take())
    await turns(2)
    queue.add("a")
    assert await taking == "a"


async def test_a_worker_that_is_cancelled_loses_no_key(queue):
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await turns(2)
    queue.add("a")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert await second == "a"


async def test_a_worker_that_is_cancelled_while_it_waits_is_forgotten(queue):
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await turns(2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    queue.add("a")
    assert await second == "a"


async def test_a_closed_queue_gives_and_takes_nothing(queue):
    waiting = asyncio.create_task(queue.take())
    await turns(2)
    queue.close()
    assert await waiting is None
    queue.add("a")
    assert len(queue) == 0
    assert await queue.take() is None


async def test_a_closed_queue_keeps_what_waits_to_itself(queue):
    queue.add("a")
    queue.close()
    assert await queue.take() is None


async def test_what_was_in_hand_can_be_ended_after_closing(queue):
    queue.add("a")
    key = await queue.take()
    queue.add("a")
    queue.close()
    queue.done(key)
    assert len(queue) == 0
