"""Connection pool: which connection a request uses, and when a connection is closed."""

import asyncio
import contextlib
from urllib.parse import urlsplit

import pytest

from mockube.client.connections import (
    IDLE_SECONDS,
    OPENED_AT_ONCE,
    PACE_SECONDS,
    Address,
    ConnectionBroken,
    Connections,
    NotConnected,
)
from mockube.component_base.clock import RealClock, SteppedClock
from tests.support.event_loop import WAIT_TIMEOUT, until
from tests.support.server.raw_server import answer, serving

SAID = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.asynccontextmanager
async def connections_to(server, clock=None):
    at = urlsplit(server.url)
    connections = Connections(
        Address(host=at.hostname, port=at.port, trust=None, server_name=""), clock or RealClock()
    )
    try:
        yield connections
    finally:
        await connections.close()


async def send_request(connections, *, seconds=20.0):
    return await connections.exchange(SAID, seconds=seconds, is_head=False)


class AbortableTransport(asyncio.Transport):
    aborted = False

    def abort(self):
        self.aborted = True


@pytest.mark.parametrize("is_before", [True, False], ids=["before the cancellation", "after it"])
async def test_handshake_that_ends_with_cancellation_does_not_delay_close(is_before):
    """With TLS, uvloop calls `connection_made` then, and never `connection_lost`."""
    made = []

    class Loop(asyncio.SelectorEventLoop):
        async def create_connection(self, protocol_factory, *_, **__):
            made.append(protocol_factory())
            await self.create_future()

    async def scenario():
        connections = Connections(Address(host="", port=0, trust=None, server_name=""), RealClock())
        connecting = asyncio.create_task(send_request(connections))
        await until(lambda: made)
        transport = AbortableTransport()
        if is_before:
            made[0].connection_made(transport)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        if not is_before:
            made[0].connection_made(transport)
        await asyncio.wait_for(connections.close(), WAIT_TIMEOUT)
        assert transport.aborted

    def run():
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(scenario())

    await asyncio.to_thread(run)


async def test_concurrent_requests_use_separate_connections():
    waiting = []

    async def serve(writer):
        waiting.append(writer)

    async with serving(serve) as server, connections_to(server) as connections:
        asked = [asyncio.create_task(send_request(connections)) for _ in range(3)]
        await until(lambda: len(waiting) == 3)
        for number, writer in enumerate(waiting):
            writer.write(answer(b"%d" % number))
        assert sorted([(await one).body for one in asked]) == [b"0", b"1", b"2"]


class Burst:
    """As many requests at once as connections are opened, and some more that wait for one of these."""

    def __init__(self, clock, server, connections, unanswered):
        self.clock, self.server, self.connections = clock, server, connections
        self.unanswered = unanswered
        """The connections whose request has no response yet."""
        self.sent = []

    def send(self, request=None):
        sent = asyncio.create_task(request or send_request(self.connections))
        self.sent.append(sent)
        return sent


@contextlib.asynccontextmanager
async def burst(extra, first=None):
    unanswered, clock = [], SteppedClock()

    async def serve(writer):
        unanswered.append(writer)

    async with serving(serve) as server, connections_to(server, clock) as connections:
        requests = Burst(clock, server, connections, unanswered)
        requests.send(first and first(requests))
        for _ in range(OPENED_AT_ONCE - 1 + extra):
            requests.send()
        await until(lambda: len(unanswered) == OPENED_AT_ONCE)
        yield requests
        for each in requests.sent:
            each.cancel()
        await asyncio.wait(requests.sent)


async def test_burst_of_requests_uses_few_connections():
    async with burst(3) as requests:
        for writer in requests.unanswered[:3]:
            writer.write(answer())
        await until(lambda: len(requests.unanswered) == OPENED_AT_ONCE + 3)
        assert len(requests.server.connections) == OPENED_AT_ONCE


async def test_slow_responses_do_not_hold_up_other_requests():
    async with burst(2) as requests:
        for number in (1, 2):
            requests.clock.advance(PACE_SECONDS)
            await until(lambda number=number: len(requests.unanswered) == OPENED_AT_ONCE + number)
        assert len(requests.server.connections) == OPENED_AT_ONCE + 2


async def test_connection_for_a_cancelled_request_is_that_of_another():
    async def first(requests):
        await send_request(requests.connections)
        requests.sent[-1].cancel()  # it has been given the connection in this moment

    async with burst(1, first) as requests:
        requests.unanswered[0].write(answer())
        await until(requests.sent[-1].done)
        assert requests.sent[-1].cancelled()
        requests.send()
        await until(lambda: len(requests.unanswered) == OPENED_AT_ONCE + 1)
        assert len(requests.server.connections) == OPENED_AT_ONCE


async def test_requests_that_wait_end_with_the_connections():
    async with burst(1) as requests:
        await requests.connections.close()
        with pytest.raises(NotConnected):
            await requests.sent[-1]
        await asyncio.wait(requests.sent)
        assert isinstance(requests.sent[0].exception(), ConnectionBroken)


async def test_late_response_of_cancelled_request_is_not_reused():
    late = []

    async def serve(writer):
        if late:
            writer.write(answer(b"mine"))
        late.append(writer)

    async with serving(serve) as server, connections_to(server) as connections:
        first = asyncio.create_task(send_request(connections))
        await until(lambda: late)
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        late[0].write(answer(b"late"))
        assert (await send_request(connections)).body == b"mine"
    assert len(server.connections) == 2


async def test_unsolicited_data_closes_connection():
    async def serve(writer):
        writer.write(answer(b"1"))
        await writer.drain()
        written.append(writer)

    written = []
    async with serving(serve) as server, connections_to(server) as connections:
        await send_request(connections)
        await until(lambda: written)
        written[0].write(answer(b"2"))
        await until(lambda: server.left == 1)
        assert (await send_request(connections)).body == b"1"
    assert len(server.connections) == 2


async def test_closed_connection_is_not_reused():
    async def serve(writer):
        writer.write(answer(headers=b"Connection: close\r\n"))

    async with serving(serve) as server, connections_to(server) as connections:
        for _ in range(3):
            assert (await send_request(connections)).status == 200
    assert len(server.connections) == 3


async def test_idle_connection_is_not_reused():
    clock = SteppedClock()
    async with serving() as server, connections_to(server, clock) as connections:
        for seconds in (IDLE_SECONDS - 1, IDLE_SECONDS):
            await send_request(connections)
            clock.advance(seconds)
        await send_request(connections)
    assert len(server.connections) == 2


async def test_response_timeout_closes_connection():
    clock = SteppedClock()
    waiting = []

    async def serve(writer):
        waiting.append(writer)

    async with serving(serve) as server, connections_to(server, clock) as connections:
        asked = asyncio.create_task(send_request(connections, seconds=20.0))
        await until(lambda: waiting)
        clock.advance(20.0)
        with pytest.raises(TimeoutError):
            await asked
        await until(lambda: server.left == 1)


async def test_malformed_response_closes_connection():
    async def serve(writer):
        writer.write(b"SSH-2.0\r\n\r\n")

    async with serving(serve) as server, connections_to(server) as connections:
        with pytest.raises(ConnectionBroken, match="the response begins with b'SSH"):
            await send_request(connections)


async def test_close_ends_every_connection():
    async with serving() as server, connections_to(server) as connections:
        await send_request(connections)
        await connections.close()
        await until(lambda: server.left == 1)


async def test_refused_connection_raises_not_connected():
    async with serving() as server:
        pass
    async with connections_to(server) as connections:
        with pytest.raises(NotConnected):
            await send_request(connections)


@pytest.mark.parametrize(
    ("received", "problem"),
    [
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 11, "response body is too long", id="a long body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "closed", id="an early end"),
    ],
)
async def test_response_that_cannot_be_used_breaks_connection(received, problem):
    async def serve(writer):
        writer.write(received)
        writer.close()

    async with serving(serve) as server:
        at = urlsplit(server.url)
        address = Address(host=at.hostname, port=at.port, trust=None, server_name="")
        connections = Connections(address, RealClock(), max_body_bytes=10)
        with pytest.raises(ConnectionBroken, match=problem):
            await send_request(connections)
        await connections.close()


async def test_body_may_end_with_connection():
    async def serve(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nto the end")
        writer.close()

    async with serving(serve) as server, connections_to(server) as connections:
        response = await send_request(connections)
        assert (response.body, response.is_reusable) == (b"to the end", False)
