"""Fairness between clients whose requests wait for a connection to a kubelet."""

import asyncio
import contextlib

import pytest

from mockube.apiserver.http.dial_limiter import FairDialLimiter
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop

KUBELET, OTHER = ("10.0.0.1", 10250), ("10.0.0.2", 10250)


class ScriptedConnections:
    """Connections that stay open until the test ends them."""

    def __init__(self, limit):
        self.clock = SteppedClock()
        self.dial_limiter = FairDialLimiter(limit, self.clock)
        self.begun = []
        self.failed = []
        self.tasks = {}

    async def begin(self, name, user, address=KUBELET):
        self.tasks[name] = asyncio.create_task(self._open(name, user, address))
        await yield_to_loop()

    async def _open(self, name, user, address):
        try:
            async with self.dial_limiter.slot(address, user):
                self.begun.append(name)
                await asyncio.Event().wait()
        except TimeoutError:
            self.failed.append(name)

    async def end(self, name):
        self.tasks[name].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.tasks.pop(name)
        await yield_to_loop()


@pytest.fixture
async def connections():
    connections = ScriptedConnections(2)
    yield connections
    for name in [*connections.tasks]:
        await connections.end(name)


async def test_dials_alternate_between_users(connections):
    for number in range(5):
        await connections.begin(f"many-{number}", "alice")
    await connections.begin("single", "bob")
    assert connections.begun == ["many-0", "many-1"]
    for number in range(4):
        await connections.end(f"many-{number}")
    assert connections.begun == ["many-0", "many-1", "many-2", "single", "many-3", "many-4"]


async def test_limit_applies_to_each_address(connections):
    for number in range(3):
        await connections.begin(f"many-{number}", "alice")
    await connections.begin("elsewhere", "alice", OTHER)
    assert connections.begun == ["many-0", "many-1", "elsewhere"]


async def test_cancelled_opening_starts_next_in_queue(connections):
    for name in "abcd":
        await connections.begin(name, "alice")
    await connections.end("c")
    connections.tasks["a"].cancel()
    await yield_to_loop()
    connections.tasks["d"].cancel()  # It is next in the queue and has not started.
    await yield_to_loop()
    await connections.begin("e", "alice")
    assert connections.begun == ["a", "b", "e"]


async def test_timeout_fails_all_dials_that_waited_as_long(connections):
    for name in "abc":
        await connections.begin(name, "alice")
    connections.clock.advance(20)
    await connections.begin("late", "alice")
    connections.clock.advance(10)
    connections.dial_limiter.fail(KUBELET, 30)
    await yield_to_loop()
    assert connections.failed == ["c"]
    await connections.end("a")
    assert connections.begun == ["a", "b", "late"]
    connections.dial_limiter.fail(OTHER, 30)
