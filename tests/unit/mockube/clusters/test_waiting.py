"""Waiting for other processes, with a stepped clock."""

import asyncio

import pytest

from mockube.clusters.named_cluster import wait_until
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until


@pytest.mark.parametrize(("true_after", "answer"), [(0.0, True), (3.0, True), (9.0, False)])
async def test_wait_until_returns_whether_condition_became_true(true_after, answer):
    clock = SteppedClock()
    waiting = asyncio.create_task(wait_until(lambda: clock.monotonic() >= true_after, clock, seconds=5))
    while not waiting.done():
        await until(lambda: waiting.done() or clock.next_due() is not None)
        clock.advance(clock.next_due() or 0)
    assert await waiting is answer
