"""Connections of clients: those to a pod that has ended break, and so do idle ones and old ones of too many."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.publisher import limits
from mockube.publisher.connections import Connections
from tests.support.event_loop import yield_to_loop


class Connection:
    """A client's connection that records what becomes of it."""

    address = "127.0.0.1"

    def __init__(self, used_at=0.0):
        self.used_at = used_at
        self.fate = []

    def reset(self):
        self.fate.append("reset")

    async def close(self):
        self.fate.append("closed")


@pytest.fixture
async def connections():
    made = Connections(SteppedClock())
    yield made
    await made.end()


async def forever(_):
    await asyncio.Event().wait()


async def opened(connections, *, pod="", used_at=0.0):
    connection = Connection(used_at)

    async def serve(served):
        if pod:
            connections.note_pod(served, pod)
        await forever(served)

    connections.add(connection, serve)
    await yield_to_loop(3)
    return connection


async def test_only_connections_to_a_pod_break_with_it(connections):
    ended, other, another_pod = [await opened(connections, pod=pod) for pod in ("u", "v", "")]
    assert connections.leads_to("u")
    connections.break_pod("u")
    await yield_to_loop(5)
    assert (ended.fate[0], other.fate, another_pod.fate) == ("reset", [], [])
    assert (len(connections), connections.leads_to("u"), connections.leads_to("v")) == (2, False, True)


async def test_pod_has_connections_until_the_last_one_has_ended(connections):
    leave = asyncio.Event()

    async def serve(connection):
        connections.note_pod(connection, "u")
        await leave.wait()

    first = Connection()
    connections.add(first, serve)
    await opened(connections, pod="u")
    leave.set()
    await yield_to_loop(5)
    assert first.fate == ["closed"]
    assert connections.leads_to("u")
    connections.break_pod("u")
    assert first.fate == ["closed"]


async def test_connection_is_closed_after_its_error_and_reset(connections, caplog):
    async def fail(_):
        raise ValueError("a defect")

    connection = Connection()
    connections.add(connection, fail)
    await yield_to_loop(5)
    assert (connection.fate, len(connections)) == (["reset", "closed"], 0)


async def test_oldest_connection_ends_when_there_are_too_many(connections, caplog):
    connections._limit.maximum = 2
    first, second, third = [await opened(connections) for _ in range(3)]
    assert (first.fate[0], second.fate, third.fate) == ("reset", [], [])
    await opened(connections)
    assert caplog.text.count("old ones are reset") == 1


async def test_connections_without_a_byte_for_long_are_reset(connections):
    clock = connections._clock
    idle = await opened(connections)
    sweep = asyncio.create_task(connections.end_idle())
    await yield_to_loop(3)
    clock.advance(limits.IDLE_SECONDS)
    used = await opened(connections, used_at=clock.monotonic())
    clock.advance(limits.SWEEP_SECONDS)
    await yield_to_loop(10)
    assert ("reset" in idle.fate, used.fate) == (True, [])
    sweep.cancel()


async def test_connection_that_was_reset_is_forgotten_with_its_task(connections):
    connection = await opened(connections, pod="u")
    connections.break_pod("u")
    assert (len(connections), len(connections._ending)) == (0, 1)
    await yield_to_loop(5)
    assert (connections._ending, connection.fate) == (set(), ["reset", "reset", "closed"])


async def test_connection_to_two_pods_breaks_with_either(connections):
    async def serve(served):
        connections.note_pod(served, "u")
        connections.note_pod(served, "v")
        await forever(served)

    connection = Connection()
    connections.add(connection, serve)
    await yield_to_loop(3)
    connections.break_pod("unknown")
    assert connection.fate == []
    connections.break_pod("v")
    await yield_to_loop(5)
    assert (connections.leads_to("u"), connections.leads_to("v")) == (False, False)


async def test_end_waits_for_all_connections(connections):
    closing = asyncio.Event()

    class Slow(Connection):
        async def close(self):
            await closing.wait()
            self.fate.append("closed")

    slow = Slow()
    connections.add(slow, forever)
    await yield_to_loop(3)
    end = asyncio.create_task(connections.end())
    await yield_to_loop(5)
    assert (slow.fate[0], end.done()) == ("reset", False)
    closing.set()
    await end
    assert slow.fate[-1] == "closed"


async def test_warning_is_repeated_once_there_was_room(connections, caplog):
    connections._limit.maximum = 1
    first = await opened(connections)
    second = await opened(connections)
    assert first.fate[0] == "reset"
    connections._break(second)
    await yield_to_loop(5)
    await opened(connections)
    await opened(connections)
    assert caplog.text.count("old ones are reset") == 2
