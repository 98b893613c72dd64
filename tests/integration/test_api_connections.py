"""HTTP connections: Server headers, Expect: 100-continue, and clients that do not read their responses."""

import asyncio

import orjson
import pytest

from mockube.apiserver.http.server import STALLED_SECONDS, SWEEP_SECONDS, Server
from mockube.apiserver.request.response import Response
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until, yield_to_loop
from tests.support.server import apiserver
from tests.support.server.http_server import served

MAPS = "/api/v1/namespaces/default/configmaps"
LARGE = "x" * 900_000


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def client(clock):
    flags = "--max-requests-inflight=1", "--max-mutating-requests-inflight=1"
    async with apiserver.running(*flags, clock=clock) as client:
        client.clock = clock
        yield client


class RawConnection:
    """A connection that reads only when the test allows it."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def send(self, method, path, *headers, body=b"", user="admin"):
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
        if user:
            lines.append(f"Authorization: Bearer {user}")
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()

    async def read_head(self):
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        return lines[0], dict(line.lower().split(": ", 1) for line in lines[1:-2])


@pytest.fixture
async def connect(client):
    opened = []

    async def connect(**settings):
        host, port = client.url.removeprefix("http://").split(":")
        raw = RawConnection(*await asyncio.open_connection(host, int(port), **settings))
        opened.append(raw)
        return raw

    yield connect
    for raw in opened:
        raw.writer.transport.abort()


async def fill_with_maps(client, count=20):
    """A body larger than the buffers of any socket."""
    for number in range(count):
        created = await client.post(MAPS, {"metadata": {"name": f"m{number}"}, "data": {"a": LARGE}})
        assert created.status == 201


async def metrics(client):
    return (await client.get("/metrics")).data.decode()


@pytest.mark.parametrize(
    "path", ["/version", "/healthz", "/nosuch", "/metrics", MAPS, f"{MAPS}?watch=1&timeoutSeconds=1"]
)
async def test_responses_have_no_server_header(client, connect, path):
    raw = await connect()
    await raw.send("GET", path)
    status, headers = await raw.read_head()
    assert "server" not in headers, status


async def test_error_responses_of_parser_have_no_server_header(client, connect):
    raw = await connect()
    raw.writer.write(b"no\r\n\r\n")
    assert "server" not in (await raw.read_head())[1]
    client.clock.advance(1)
    raw = await connect()
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", key)
    await raw.send("GET", f"{MAPS}?watch=1", *upgrade)
    status, headers = await raw.read_head()
    assert (status, "server" in headers) == ("HTTP/1.1 101 Switching Protocols", False)


async def test_expect_100_continue_gets_100(client, connect):
    raw, body = await connect(), orjson.dumps({"metadata": {"name": "patient"}})
    sized = f"Content-Length: {len(body)}"
    await raw.send("POST", MAPS, "Expect: 100-Continue", sized, "Content-Type: application/json")
    assert await raw.read_head() == ("HTTP/1.1 100 Continue", {})
    raw.writer.write(body)
    assert (await raw.read_head())[0] == "HTTP/1.1 201 Created"


async def test_unauthorized_request_gets_no_100_continue(client, connect):
    raw = await connect()
    await raw.send("POST", MAPS, "Expect: 100-continue", "Content-Length: 100", user="nobody")
    status, headers = await raw.read_head()
    assert (status, headers["connection"]) == ("HTTP/1.1 401 Unauthorized", "close")


async def test_unknown_expectation_fails(client, connect):
    raw = await connect()
    await raw.send("GET", "/version", "Expect: miracles")
    status, headers = await raw.read_head()
    assert (status, headers["content-length"]) == ("HTTP/1.1 417 Expectation Failed", "0")
    assert headers["connection"] == "close"
    assert await raw.reader.read() == b""


async def test_large_response_counts_as_in_flight_until_read(client, connect):
    await fill_with_maps(client)
    raw = await connect(limit=1 << 16)
    await raw.send("GET", MAPS, user="alice")
    _, headers = await raw.read_head()
    assert (await client.get(MAPS, Authorization="Bearer alice")).status == 429
    await raw.reader.readexactly(int(headers["content-length"]))
    await until(lambda: not client.server.handler.in_flight.count("get"))
    assert (await client.get(MAPS, Authorization="Bearer alice")).status == 200


async def test_unread_response_is_dropped_at_deadline(client, connect, clock):
    await fill_with_maps(client)
    raw = await connect(limit=1 << 16)
    await raw.send("GET", MAPS, user="alice")
    await raw.read_head()
    clock.advance(60)
    await until(lambda: not client.server.handler.in_flight.count("get"))
    assert "apiserver_request_aborts_total{" in await metrics(client)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await raw.reader.readexactly(20_000_000)


@pytest.mark.parametrize("upgrade", [False, True], ids=["stream", "websocket"])
async def test_unread_watch_is_closed_and_counted(client, connect, upgrade):
    await fill_with_maps(client)
    raw = await connect(limit=1 << 16)
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    headers = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", key)
    await raw.send("GET", f"{MAPS}?watch=1", *(headers if upgrade else ()))
    await raw.read_head()
    server = client.server.http
    await until(lambda: any(connection.writing_paused for connection in server.connections))
    client.clock.advance(STALLED_SECONDS)
    assert client.server.handler.watch_handler._streams, "not yet"
    client.clock.advance(2 * SWEEP_SECONDS)
    await until(lambda: not client.server.handler.watch_handler._streams)
    found = await metrics(client)
    assert 'apiserver_terminated_watchers_total{group="",resource="configmaps"} 1' in found


async def test_unread_pongs_take_bounded_memory(client, connect):
    server = client.server.http
    before = {*server.connections}
    raw = await connect(limit=1 << 16)
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    headers = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", key)
    await raw.send("GET", f"{MAPS}?watch=1", *headers)
    await raw.read_head()
    (connection,) = {*server.connections} - before
    pings = (b"\x89\xfd" + bytes(4 + 125)) * 1000
    while raw.writer.transport.get_write_buffer_size() < 1 << 20:  # the socket's buffers are full
        raw.writer.write(pings)
        await yield_to_loop(100)
    assert connection.writing_paused
    assert connection.transport.get_write_buffer_size() < 256 << 10
    for _ in range(2):
        client.clock.advance(STALLED_SECONDS + 2 * SWEEP_SECONDS)
    await until(lambda: not client.server.handler.watch_handler._streams)


async def test_slowly_read_watch_is_kept(client, connect):
    await fill_with_maps(client, 40)
    raw = await connect(limit=1 << 16)
    await raw.send("GET", f"{MAPS}?watch=1")
    await raw.read_head()
    server = client.server.http
    for _ in range(3):
        await until(lambda: any(connection.writing_paused for connection in server.connections))
        connection = next(one for one in server.connections if one.writing_paused)
        drains = connection.drains
        client.clock.advance(STALLED_SECONDS - SWEEP_SECONDS)
        while connection.drains == drains:  # the system's buffers take a while to empty
            await raw.reader.readexactly(50_000)
    assert client.server.handler.watch_handler._streams
    assert "apiserver_terminated_watchers_total{" not in await metrics(client)


async def test_client_that_reads_no_small_responses_is_disconnected(clock):
    answered = 0

    async def handle(_request):
        nonlocal answered
        answered += 1
        return Response(200, [b"x" * 200_000])

    server = Server(handle, clock=clock)
    async with served(server) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
        await until(lambda: any(connection.writing_paused for connection in server.connections))
        await yield_to_loop(2000)
        assert answered < 200, "what is not read is not answered either"
        for _ in range(2):
            clock.advance(STALLED_SECONDS + 2 * SWEEP_SECONDS)
        await until(lambda: not server.connections)
        writer.transport.abort()
