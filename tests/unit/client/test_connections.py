"""Connection pool: which connection a request uses, and when a connection is closed."""

import asyncio
import contextlib
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.client.connections import (
    IDLE_SECONDS,
    MAX_HEAD_BYTES,
    MAX_LINE_BYTES,
    Address,
    ConnectionBroken,
    Connections,
    MalformedResponse,
    NotConnected,
    ResponseReader,
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


COUNTED = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-LENGTH: \t5 \r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;x=y\r\nhel\r\n00A \r\nlo\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
)
EMPTY = b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103\r\nLink: x\r\n\r\n" + COUNTED
NO_CONTENT = b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\n{}"
OLD = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"
TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\nto the end"


def read(*pieces, is_head=False):
    """Return the response, which the last piece or else the end of the connection completes."""
    reader = ResponseReader(is_head=is_head)
    *before, last = [reader.feed(piece) for piece in pieces]
    assert before == [None] * len(before)
    return last or reader.end()


@pytest.mark.parametrize(
    ("received", "status", "body", "is_reusable"),
    [
        pytest.param(COUNTED, 200, b"hello", True, id="counted"),
        pytest.param(CHUNKED, 201, b"hello\r\n world", True, id="chunked"),
        pytest.param(EMPTY, 200, b"", True, id="empty"),
        pytest.param(CONTINUED, 200, b"hello", True, id="after informational responses"),
        pytest.param(NO_CONTENT, 204, b"", True, id="without content"),
        pytest.param(LAST, 200, b"{}", False, id="last of the connection"),
        pytest.param(OLD, 200, b"{}", False, id="HTTP/1.0"),
        pytest.param(TO_THE_END, 200, b"to the end", False, id="to the end"),
        pytest.param(COUNTED + b"x", 200, b"hello", False, id="additional data"),
        pytest.param(CHUNKED + b"x", 201, b"hello\r\n world", False, id="additional data after chunks"),
    ],
)
def test_http_response_is_parsed(received, status, body, is_reusable):
    response = read(received)
    assert (response.status, response.body, response.is_reusable) == (status, body, is_reusable)


def test_response_to_head_has_no_body():
    response = read(COUNTED.removesuffix(b"hello"), is_head=True)
    assert (response.body, response.is_reusable) == (b"", True)
    assert response.headers == {b"content-type": b"a/b", b"content-length": b"5"}


@given(st.sampled_from([COUNTED, CHUNKED, EMPTY, CONTINUED, NO_CONTENT, LAST]), st.data())
def test_response_is_parsed_from_any_chunks(received, data):
    cuts = data.draw(st.lists(st.integers(0, len(received) - 1), unique=True).map(sorted))
    pieces = [received[a:b] for a, b in zip([0, *cuts], [*cuts, len(received)], strict=True)]
    assert read(*pieces) == read(received)


@pytest.mark.parametrize("received", [b"", b"HTTP/1.1 200 OK\r\n", COUNTED[:-1], CHUNKED[:-2]])
def test_truncated_response_is_incomplete(received):
    assert read(received) is None


@pytest.mark.parametrize(
    ("received", "problem"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "begins with b'SSH"),
        (b"HTTP/2 200\r\n\r\n", "begins with"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "invalid response header b'nonsense'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "length of b'-1'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "encoded as b'gzip"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "size of b'-1'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "longer than its size"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * MAX_HEAD_BYTES, "response header is too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * (MAX_LINE_BYTES + 1), "too long"),
    ],
)
def test_malformed_response_is_refused(received, problem):
    with pytest.raises(MalformedResponse, match=problem):
        ResponseReader().feed(received)
