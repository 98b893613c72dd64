"""Ports that are opened once, on the first one that can be had, and connections that wait for slow clients."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.publisher import limits
from mockube.publisher.listeners import Listeners
from mockube.publisher.sockets import NoSocket, SocketConnection
from tests.support.publishing import ADDRESS


async def nothing(_):
    """Serve no connection."""


@pytest.fixture
async def listeners():
    made = Listeners(SteppedClock())
    yield made
    await made.end()


async def test_port_is_opened_again_only_for_other_candidates(listeners):
    first = await listeners.open("a", ADDRESS, (0,), nothing)
    assert await listeners.open("a", ADDRESS, (0,), nothing) is first
    assert listeners.find("a") is first
    taken = first.endpoint.port
    other = await listeners.open("b", ADDRESS, (taken, 0), nothing)
    assert (other.endpoint.port != taken, "is taken by another program" in other.problem) == (True, True)
    changed = await listeners.open("a", ADDRESS, (0, 0), nothing)
    assert changed is not first
    listeners.close("a")
    assert ("a" in listeners, listeners.find("a"), "b" in listeners) == (False, None, True)


async def test_fork_and_full_listeners_open_no_port(listeners, monkeypatch):
    monkeypatch.setattr(limits, "MAX_LISTENERS", 1)
    await listeners.open("a", ADDRESS, (0,), nothing)
    with pytest.raises(NoSocket, match="1 ports are published already"):
        await listeners.open("b", ADDRESS, (0,), nothing)
    listeners.close("a")
    listeners._pid = 0
    with pytest.raises(NoSocket, match="a fork of a cluster publishes nothing"):
        await listeners.open("b", ADDRESS, (0,), nothing)


class Writer:
    """The sending end of a connection, which records its calls."""

    def __init__(self):
        self.calls = []
        self.transport = self

    def set_write_buffer_limits(self, **_): ...

    def setsockopt(self, *_): ...

    def get_extra_info(self, name):
        return ("192.0.2.7", 1234) if name == "peername" else self

    def write(self, data):
        self.calls.append(data)

    async def drain(self):
        self.calls.append("drain")


async def test_sender_waits_for_a_slow_client():
    writer, clock = Writer(), SteppedClock()
    connection = SocketConnection(None, writer, clock)
    clock.advance(5)
    await connection.write(b"a")
    assert writer.calls == [b"a", "drain"]
    assert (connection.used_at, connection.address) == (clock.monotonic(), "192.0.2.7")


async def test_clients_of_a_port_are_served(listeners):
    served = asyncio.Queue()

    async def serve(connection):
        served.put_nowait(connection)
        await connection.read(9)

    listening = await listeners.open("a", ADDRESS, (0,), serve)
    _, writer = await asyncio.open_connection(*listening.endpoint)
    connection = await served.get()
    assert (connection.address, len(listeners.connections)) == (ADDRESS, 1)
    writer.close()


async def test_closed_port_is_free_and_end_closes_all():
    listeners = Listeners(SteppedClock())
    endpoints = [(await listeners.open(key, ADDRESS, (0,), nothing)).endpoint for key in "ab"]
    listeners.close("a")
    listeners.close("a")
    await listeners.end()
    assert listeners._listeners == {}
    for endpoint in endpoints:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*endpoint)
