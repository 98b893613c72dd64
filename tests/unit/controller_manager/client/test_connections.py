"""Connection pool: which connection a request uses, and when a connection is closed."""

import asyncio
import contextlib
from urllib.parse import urlsplit

import pytest

from mockube.apimachinery.clock import RealClock, SteppedClock
from mockube.controller_manager.client.connections import (
    IDLE_SECONDS,
    Address,
    ConnectionBroken,
    Connections,
    NotConnected,
)
from tests.support.server.raw_server import answer, serving
from tests.support.turns import until

SAID = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.asynccontextmanager
async def reaching(server, clock=None):
    at = urlsplit(server.url)
    connections = Connections(
        Address(host=at.hostname, port=at.port, trust=None, server_name=""), clock or RealClock()
    )
    try:
        yield connections
    finally:
        await connections.close()


async def ask(connections, *, seconds=20.0):
    return await connections.exchange(SAID, seconds=seconds, is_head=False)


async def test_concurrent_requests_use_separate_connections():
    waiting = []

    async def talk(writer):
        waiting.append(writer)

    async with serving(talk) as server, reaching(server) as connections:
        asked = [asyncio.create_task(ask(connections)) for _ in range(3)]
        await until(lambda: len(waiting) == 3)
        for number, writer in enumerate(waiting):
            writer.write(answer(b"%d" % number))
        assert sorted([(await one).body for one in asked]) == [b"0", b"1", b"2"]


async def test_late_response_of_cancelled_request_is_not_reused():
    late = []

    async def talk(writer):
        if late:
            writer.write(answer(b"mine"))
        late.append(writer)

    async with serving(talk) as server, reaching(server) as connections:
        first = asyncio.create_task(ask(connections))
        await until(lambda: late)
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        late[0].write(answer(b"late"))
        assert (await ask(connections)).body == b"mine"
    assert len(server.connections) == 2


async def test_unsolicited_data_closes_connection():
    async def talk(writer):
        writer.write(answer(b"1"))
        await writer.drain()
        written.append(writer)

    written = []
    async with serving(talk) as server, reaching(server) as connections:
        await ask(connections)
        await until(lambda: written)
        written[0].write(answer(b"2"))
        await until(lambda: server.left == 1)
        assert (await ask(connections)).body == b"1"
    assert len(server.connections) == 2


async def test_closed_connection_is_not_reused():
    async def talk(writer):
        writer.write(answer(headers=b"Connection: close\r\n"))

    async with serving(talk) as server, reaching(server) as connections:
        for _ in range(3):
            assert (await ask(connections)).status == 200
    assert len(server.connections) == 3


async def test_idle_connection_is_not_reused():
    clock = SteppedClock()
    async with serving() as server, reaching(server, clock) as connections:
        for seconds in (IDLE_SECONDS - 1, IDLE_SECONDS):
            await ask(connections)
            clock.advance(seconds)
        await ask(connections)
    assert len(server.connections) == 2


async def test_response_timeout_closes_connection():
    clock = SteppedClock()
    waiting = []

    async def talk(writer):
        waiting.append(writer)

    async with serving(talk) as server, reaching(server, clock) as connections:
        asked = asyncio.create_task(ask(connections, seconds=20.0))
        await until(lambda: waiting)
        clock.advance(20.0)
        with pytest.raises(TimeoutError):
            await asked
        await until(lambda: server.left == 1)


async def test_malformed_response_closes_connection():
    async def talk(writer):
        writer.write(b"SSH-2.0\r\n\r\n")

    async with serving(talk) as server, reaching(server) as connections:
        with pytest.raises(ConnectionBroken, match="the response begins with b'SSH"):
            await ask(connections)


async def test_close_ends_every_connection():
    async with serving() as server, reaching(server) as connections:
        await ask(connections)
        await connections.close()
        await until(lambda: server.left == 1)


async def test_refused_connection_raises_not_connected():
    async with serving() as server:
        pass
    async with reaching(server) as connections:
        with pytest.raises(NotConnected):
            await ask(connections)
