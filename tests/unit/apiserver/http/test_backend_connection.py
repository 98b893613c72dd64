"""A connection to a backend that sends anything, or disappears: clear errors, and nothing of the request stays in memory."""

import asyncio
import contextlib
import gc
import socket
import struct
import weakref

import pytest

from mockube.apiserver.http.backend_connection import BackendLost, DialFailed, connect
from tests.support.event_loop import until

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
RESET = struct.pack("ii", 1, 0)


class Marker:
    """Stands for what a request refers to."""


@contextlib.asynccontextmanager
async def serving(*answers, is_reset=False):
    """Serve one connection that sends the answers after the first bytes, and then ends, or is reset."""

    async def serve(reader, writer):
        with contextlib.suppress(ConnectionError):
            await reader.read(4096)
            for answer in answers:
                writer.write(answer)
                await writer.drain()
            if is_reset:
                await release.wait()
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.transport.abort()
            writer.close()
            await writer.wait_closed()
        ended.set()

    release, ended = asyncio.Event(), asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], release
        await ended.wait()


@contextlib.asynccontextmanager
async def backend(*answers):
    async with serving(*answers) as (port, _):
        connection = await connect("127.0.0.1", port, None, None)
        try:
            yield connection
        finally:
            connection.writer.transport.abort()


async def response(connection, method="GET"):
    await connection.send_head(method, "/", [("Host", "x")])
    head = await connection.read_head()
    return head.status, b"".join([part async for part in connection.body()])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 2", "unexpected EOF"),
        (b"SSH-2.0\r\n", 'malformed HTTP response "SSH-2.0"'),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000, "the response header is too long"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000, "the response header is too long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "the response has a length of b'x'"),
    ],
    ids=[
        "nothing",
        "an early end",
        "another protocol",
        "an endless head",
        "endless 1xx responses",
        "no length",
    ],
)
async def test_response_without_valid_head_is_dial_failure(answer, problem):
    async with backend(answer) as connection:
        with pytest.raises(DialFailed) as caught:
            await response(connection)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (HEAD + b"12345", "ends too early"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", "ends too early"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", "not chunked"),
    ],
    ids=["counted", "chunked", "malformed"],
)
async def test_incomplete_body_is_connection_error(answer, problem):
    async with backend(answer) as connection:
        with pytest.raises(ConnectionError, match=problem):
            await response(connection)


async def test_body_follows_informational_responses():
    async with backend(b"HTTP/1.1 103 Early\r\n\r\n" + HEAD + b"0123456789") as connection:
        assert await response(connection) == (200, b"0123456789")


async def test_line_break_in_header_is_not_sent():
    async with backend() as connection:
        with pytest.raises(DialFailed, match='net/http: invalid header field value for "X-Forwarded-Uri"'):
            await connection.send_head("GET", "/", [("X-Forwarded-Uri", "/a\r\nHost: evil.example")])


async def test_data_behind_switch_of_protocols_are_read_first():
    async with backend(b"HTTP/1.1 101 Switching Protocols\r\n\r\nfirst") as connection:
        await connection.send_head("GET", "/", [])
        assert (await connection.read_head()).status == 101
        assert [await connection.read(), await connection.read()] == [b"first", b""]


@pytest.mark.parametrize("answers", [(), (HEAD + b"12345",)], ids=["before the head", "in the body"])
async def test_reset_connection_does_not_stay_in_memory(answers):
    """Its stream keeps the error, and the error has the frames that waited, which refer to the stream."""

    async def use(port, release):
        marker, connection = Marker(), await connect("127.0.0.1", port, None, None)
        found.extend([weakref.ref(marker), weakref.ref(connection)])
        await connection.send_head("GET", "/", [("Host", "x")])
        if answers:
            await connection.read_head()
            await anext(connection.body())
        release.set()
        with contextlib.suppress(BackendLost, DialFailed):
            await (connection.read() if answers else connection.read_head())
            raise AssertionError("the connection was not lost")
        connection.writer.transport.abort()

    found = []
    gc.disable()
    try:
        async with serving(*answers, is_reset=True) as (port, release):
            await use(port, release)
            await until(lambda: not any(reference() for reference in found))
    finally:
        gc.enable()


async def test_reset_connection_has_gos_reason():
    async with serving(is_reset=True) as (port, release):
        connection = await connect("127.0.0.1", port, None, None)
        await connection.send_head("GET", "/", [("Host", "x")])
        release.set()
        with pytest.raises(DialFailed, match=r"^read: connection reset by peer$"):
            await connection.read_head()
        connection.writer.transport.abort()
