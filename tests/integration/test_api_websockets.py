"""Watches over a WebSocket: frames that a client may send, and the bearer token among its subprotocols."""

import asyncio
import base64
import logging
import struct

import pytest

from tests.support.event_loop import WAIT_TIMEOUT, until
from tests.support.server import apiserver

PATH = "/api/v1/namespaces/default/configmaps?watch=1"
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
TOKEN = f"base64url.bearer.authorization.k8s.io.{base64.urlsafe_b64encode(b'admin').decode().rstrip('=')}"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


@pytest.fixture
async def open_watch(client):
    """Open a watch and return the head of the response with the connection."""
    writers = []

    async def open_watch(*headers, authorization=("Authorization: Bearer admin",)):
        host, port = client.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writers.append(writer)
        lines = [f"GET {PATH} HTTP/1.1", "Host: localhost", *UPGRADE, *headers, *authorization, "", ""]
        writer.write("\r\n".join(lines).encode())
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        return lines[0], dict(line.lower().split(": ", 1) for line in lines[1:]), reader, writer

    yield open_watch
    for writer in writers:
        writer.transport.abort()


def frame(opcode, data=b"", *, final=True, reserved=0, masked=True, length=None):
    size = len(data) if length is None else length
    head = bytes([final << 7 | reserved << 4 | opcode])
    mark = masked << 7
    if size < 126:
        head += bytes([mark | size])
    elif size < 1 << 16:
        head += struct.pack("!BH", mark | 126, size)
    else:
        head += struct.pack("!BQ", mark | 127, size)
    return head + (bytes(4) if masked else b"") + data  # a mask of zeros changes nothing


async def close_code(reader):
    """Return the code of the frame that closes the socket; skip the frames before it."""
    while True:
        first, size = await reader.readexactly(2)
        if size == 126:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
        data = await reader.readexactly(size)
        if first & 15 == CLOSE:
            return struct.unpack("!H", data[:2])[0] if data else None


async def wait_until_removed(client):
    """Wait until the watch is removed."""
    await until(lambda: not client.server.handler.watch_handler._streams)
    await until(
        lambda: not [task for task in asyncio.all_tasks() if task.get_name() == "the client of a watch"]
    )


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(frame(TEXT, b"x" * 5000), 1009, id="a message of more than 4 KiB"),
        pytest.param(frame(BINARY, b"", length=1 << 40), 1009, id="a length of a tebibyte"),
        pytest.param(frame(TEXT, b"x" * 3000, final=False) + frame(CONTINUATION, b"x" * 3000), 1009, id="a fragmented message"),
        pytest.param(frame(TEXT, b"x", reserved=4), 1002, id="a reserved bit"),
        pytest.param(frame(3, b"x"), 1002, id="an unknown opcode"),
        pytest.param(frame(PING, b"x" * 126), 1002, id="a long ping"),
        pytest.param(frame(PING, b"x", final=False), 1002, id="a ping in parts"),
        pytest.param(frame(CONTINUATION, b"x"), 1002, id="a continuation without a start"),
        pytest.param(frame(TEXT, b"x", final=False) + frame(TEXT, b"x"), 1002, id="a message within another"),
        pytest.param(frame(TEXT, b"\xff"), 1007, id="text that is no utf-8"),
        pytest.param(frame(CLOSE, b"\x03"), 1002, id="half a code"),
        pytest.param(frame(CLOSE, struct.pack("!H", 1000)), 1000, id="a close"),
        pytest.param(frame(CLOSE, struct.pack("!H", 1000)) * 1000, 1000, id="a thousand of them"),
    ],
)  # fmt: skip
async def test_invalid_websocket_frame_closes_watch(client, open_watch, caplog, sent, code):
    _, _, reader, writer = await open_watch()
    writer.write(sent)
    async with asyncio.timeout(WAIT_TIMEOUT):
        assert await close_code(reader) == code
        await wait_until_removed(client)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_unmasked_websocket_frame_is_accepted(client, open_watch):
    """Unlike upstream, which ends the watch with 1002: aiohttp does not check the mask."""
    _, _, reader, writer = await open_watch()
    writer.write(frame(TEXT, b"x", masked=False) + frame(PING, b"done", masked=False))
    async with asyncio.timeout(WAIT_TIMEOUT):
        assert await reader.readexactly(6) == b"\x8a\x04done"
    assert client.server.handler.watch_handler._streams


async def test_disconnected_websocket_client_ends_watch(client, open_watch):
    _, _, _, writer = await open_watch()
    writer.write_eof()
    await wait_until_removed(client)


async def test_unread_websocket_messages_take_bounded_memory(client, open_watch):
    """Some megabytes of them; the pongs that the client does not read are bounded by its socket."""
    _, _, reader, writer = await open_watch()
    for _ in range(64):
        writer.write(frame(TEXT, b"x" * 4000) * 16)
        await writer.drain()
    writer.write(frame(PING, b"done"))
    async with asyncio.timeout(WAIT_TIMEOUT):
        assert await reader.readexactly(6) == b"\x8a\x04done"
    connection = next(iter(client.server.http.connections))
    assert connection.transport.get_write_buffer_size() == 0
    assert client.server.handler.watch_handler._streams


async def test_token_subprotocol_authenticates_and_is_not_returned(open_watch):
    first, headers, _, _ = await open_watch(
        f"Sec-WebSocket-Protocol: {TOKEN}, base64.binary.k8s.io", authorization=()
    )
    assert first == "HTTP/1.1 101 Switching Protocols"
    assert headers["sec-websocket-protocol"] == "base64.binary.k8s.io"


async def test_single_subprotocol_is_returned(open_watch):
    _, headers, _, _ = await open_watch("Sec-WebSocket-Protocol: anything")
    assert headers["sec-websocket-protocol"] == "anything"
    _, headers, _, _ = await open_watch()
    assert "sec-websocket-protocol" not in headers


@pytest.mark.parametrize(
    ("offered", "status"),
    [
        (TOKEN, "401 Unauthorized"),
        (f"{TOKEN}, {TOKEN}, a", "401 Unauthorized"),
        (f"{TOKEN}x, a", "401 Unauthorized"),
        ("a", "401 Unauthorized"),
        (f"{TOKEN}, a, b", "400 Bad Request"),
    ],
)
async def test_token_subprotocol_needs_one_other_subprotocol(open_watch, offered, status):
    first, _, _, _ = await open_watch(f"Sec-WebSocket-Protocol: {offered}", authorization=())
    assert first == f"HTTP/1.1 {status}"
