"""Fairness between clients whose requests wait for a connection to a kubelet."""

import asyncio
import contextlib

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.apiserver.http.fair_openings import FairOpenings
from tests.support.turns import turn

KUBELET, OTHER = ("10.0.0.1", 10250), ("10.0.0.2", 10250)


class Connections:
    """Connections whose opening the test completes."""

    def __init__(self, limit):
        self.clock = SteppedClock()
        self.openings = FairOpenings(limit, self.clock)
        self.begun = []
        self.failed = []
        self.tasks = {}

    async def begin(self, name, user, address=KUBELET):
        self.tasks[name] = asyncio.create_task(self._open(name, user, address))
        await turn()

    async def _open(self, name, user, address):
        try:
            async with self.openings.turn(address, user):
                self.begun.append(name)
                await asyncio.Event().wait()
        except TimeoutError:
            self.failed.append(name)

    async def end(self, name):
        self.tasks[name].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.tasks.pop(name)
        await turn()


@pytest.fixture
async def connections():
    connections = Connections(2)
    yield connections
    for name in [*connections.tasks]:
        await connections.end(name)


async def test_users_take_turns(connections):
    for number in range(5):
        await connections.begin(f"many-{number}", "alice")
    await connections.begin("single", "bob")
    assert connections.begun == ["many-0", "many-1"]
    for number in range(4):
        await connections.end(f"many-{number}")
    assert connections.begun == ["many-0", "many-1", "many-2", "single", "many-3", "many-4"]


async def test_an_address_does_not_wait_for_another(connections):
    for number in range(3):
        await connections.begin(f"many-{number}", "alice")
    await connections.begin("elsewhere", "alice", OTHER)
    assert connections.begun == ["many-0", "many-1", "elsewhere"]


async def test_a_client_that_goes_gives_its_turn_to_the_next(connections):
    for name in "abcd":
        await connections.begin(name, "alice")
    await connections.end("c")
    connections.tasks["a"].cancel()
    await turn()
    connections.tasks["d"].cancel()  # It is next in the queue and has not started.
    await turn()
    await connections.begin("e", "alice")
    assert connections.begun == ["a", "b", "e"]


async def test_those_that_have_waited_for_as_long_fail_with_one_that_was_not_opened_in_time(connections):
    for name in "abc":
        await connections.begin(name, "alice")
    connections.clock.advance(20)
    await connections.begin("late", "alice")
    connections.clock.advance(10)
    connections.openings.fail(KUBELET, 30)
    await turn()
    assert connections.failed == ["c"]
    await connections.end("a")
    assert connections.begun == ["a", "b", "late"]
    connections.openings.fail(OTHER, 30)
