"""A deadline on a stepped clock."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.component_base.supervision import timeout
from tests.support.event_loop import yield_to_loop


@pytest.fixture
def clock():
    return SteppedClock()


async def test_finished_block_leaves_no_timer(clock):
    async with timeout(clock, 5):
        await yield_to_loop(2)
    assert clock.next_due() is None


async def test_timeout_raises_timeout_error(clock):
    async def wait():
        async with timeout(clock, 5):
            await asyncio.get_running_loop().create_future()

    waiting = asyncio.create_task(wait())
    await yield_to_loop(2)
    clock.advance(5)
    with pytest.raises(TimeoutError, match="not done within 5 seconds"):
        await waiting


async def test_external_cancellation_stays_cancellation(clock):
    async def wait():
        async with timeout(clock, 5):
            await asyncio.get_running_loop().create_future()

    waiting = asyncio.create_task(wait())
    await yield_to_loop(2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert clock.next_due() is None


async def test_outer_timeout_ends_inner_block(clock):
    ended = []

    async def wait():
        async with timeout(clock, 5):
            try:
                async with timeout(clock, 10):
                    await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                ended.append("inner")
                raise

    waiting = asyncio.create_task(wait())
    await yield_to_loop(2)
    clock.advance(5)
    with pytest.raises(TimeoutError):
        await waiting
    assert ended == ["inner"]
