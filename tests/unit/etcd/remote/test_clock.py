import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.remote.clock import Deadline
from tests.support.event_loop import yield_to_loop


async def wait_within(clock, seconds, event):
    with Deadline(clock, seconds):
        return await event.wait()


@pytest.fixture
def clock():
    return SteppedClock()


async def test_wait_within_raises_timeout_error(clock):
    waiting = asyncio.create_task(wait_within(clock, 5, asyncio.Event()))
    await yield_to_loop(2)
    clock.advance(4.9)
    await yield_to_loop(2)
    assert not waiting.done()
    clock.advance(0.1)
    with pytest.raises(TimeoutError):
        await waiting


async def test_finished_wait_leaves_no_timer(clock):
    event = asyncio.Event()
    event.set()
    assert await wait_within(clock, 5, event)
    assert clock.next_due() is None


async def test_error_passes_through_wait(clock):
    with pytest.raises(ZeroDivisionError), Deadline(clock, 5):
        _ = 1 / 0
    assert clock.next_due() is None


async def test_external_cancellation_stays_cancellation(clock):
    waiting = asyncio.create_task(wait_within(clock, 5, asyncio.Event()))
    await yield_to_loop(2)
    waiting.cancel()
    clock.advance(5)
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_inner_timeout_ends_first(clock):
    async def nested():
        with Deadline(clock, 9):
            with pytest.raises(TimeoutError), Deadline(clock, 5):
                await asyncio.Event().wait()
            return "went on"

    waiting = asyncio.create_task(nested())
    await yield_to_loop(2)
    clock.advance(5)
    assert await waiting == "went on"
