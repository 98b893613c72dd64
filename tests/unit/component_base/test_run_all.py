"""Concurrent tasks: how they end, and that each cancellation reaches all of them."""

import asyncio

import pytest

from mockube.component_base.supervision import run_all
from tests.support.event_loop import yield_to_loop


async def ignore_first_cancellation(heard, name):
    """Ignore the first cancellation, and end at the second."""
    for _ in range(2):
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            heard.append(name)
    raise asyncio.CancelledError


async def raise_error():
    raise ValueError("why")


async def test_every_cancellation_reaches_all():
    heard = []
    task = asyncio.create_task(
        run_all(a=ignore_first_cancellation(heard, "a"), b=ignore_first_cancellation(heard, "b"))
    )
    for expected in (["a", "b"], ["a", "b", "a", "b"]):
        await yield_to_loop(5)
        task.cancel()
        await yield_to_loop(5)
        assert heard == expected
    assert task.cancelled()


async def test_failed_task_cancels_others():
    ended = []

    async def other():
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("other")

    with pytest.raises(ValueError, match="why"):
        await run_all(other=other(), failing=raise_error())
    assert ended == ["other"]
