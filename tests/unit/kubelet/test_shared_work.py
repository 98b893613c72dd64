"""Concurrent callers share a run, and no caller gets the result of a run that started before its call."""

import asyncio

import pytest

from mockube.kubelet.shared_work import SharedWork
from tests.support.event_loop import yield_to_loop


class Work:
    def __init__(self):
        self.begun = 0
        self.may_end = asyncio.Event()

    async def __call__(self):
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        return number


async def test_waiting_callers_share_next_run():
    shared, work = SharedWork(), Work()
    calls = [asyncio.create_task(shared.run("k", work)) for _ in range(100)]
    await yield_to_loop()
    work.may_end.set()
    assert await asyncio.gather(*calls) == [1, *[2] * 99]
    assert await shared.run("k", work) == 3


async def test_different_keys_run_independently():
    shared, work, other = SharedWork(), Work(), Work()
    slow = asyncio.create_task(shared.run("k", work))
    await yield_to_loop()
    other.may_end.set()
    assert await shared.run("l", other) == 1
    work.may_end.set()
    assert await slow == 1


async def test_cancelled_caller_leaves_work_to_next():
    shared, work = SharedWork(), Work()
    first = asyncio.create_task(shared.run("k", work))
    await yield_to_loop()
    second = asyncio.create_task(shared.run("k", work))
    await yield_to_loop()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.may_end.set()
    assert await second == 2


async def test_error_affects_its_callers_only():
    shared, work = SharedWork(), Work()
    work.may_end.set()

    async def fail():
        raise LookupError

    with pytest.raises(LookupError):
        await shared.run("k", fail)
    assert await shared.run("k", work) == 1
