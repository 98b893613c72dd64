"""A limit of time on a stepped clock."""

import asyncio

import pytest

from mockube.controller_manager.supervision import timeout
from tests.support.turns import turns


async def test_what_is_done_in_time_is_done(clock):
    async with timeout(clock, 5):
        await turns(2)
    assert clock.next_due() is None


async def test_what_takes_too_long_is_ended(clock):
    async def wait():
        async with timeout(clock, 5):
            await asyncio.get_running_loop().create_future()

    waiting = asyncio.create_task(wait())
    await turns(2)
    clock.advance(5)
    with pytest.raises(TimeoutError, match="not done within 5 seconds"):
        await waiting


async def test_who_is_cancelled_by_others_is_cancelled(clock):
    async def wait():
        async with timeout(clock, 5):
            await asyncio.get_running_loop().create_future()

    waiting = asyncio.create_task(wait())
    await turns(2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert clock.next_due() is None


async def test_of_two_limits_the_outer_one_ends_both(clock):
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
    await turns(2)
    clock.advance(5)
    with pytest.raises(TimeoutError):
        await waiting
    assert ended == ["inner"]
