"""What clients of published ports can cost: slow ones, many ones, and long heads that do not end."""

import asyncio
from socket import create_connection, create_server

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.streams import StreamsClosed
from mockube.publisher import limits
from mockube.publisher.connections import Connections
from mockube.publisher.http_proxy import HttpProxy
from mockube.publisher.http_routing import FixedAnswer, Forward
from mockube.publisher.sockets import accept
from mockube.publisher.unfinished_heads import UnfinishedHeads
from tests.support.event_loop import yield_to_loop

HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Router:
    def decide(self, request):
        if request.method == "POST":
            return Forward(backend=("default", "a", 80), target="/")
        return FixedAnswer(status=204)

    def error_body(self, _status):
        return b""


class Client:
    """A client that sends when the test does."""

    def __init__(self):
        self.queue = asyncio.Queue()
        self.received = b""
        self.has_request = False

    def note_request(self, *, has_request):
        self.has_request = has_request

    async def read(self, _limit):
        return await self.queue.get()

    async def write(self, data):
        self.received += data


class DeafClient(Client):
    """A client that reads nothing."""

    async def write(self, _data):
        await asyncio.Event().wait()


class SilentBackend:
    """Reads everything, and answers nothing until it is closed."""

    def __init__(self):
        self.closed = asyncio.Event()

    async def read(self, _limit):
        await self.closed.wait()
        return b""

    async def write(self, _data):
        if self.closed.is_set():
            raise StreamsClosed

    async def close(self):
        self.closed.set()


class Served:
    """A proxy that serves a client."""

    def __init__(self, heads=None, client=None):
        async def open_backend(_forward):
            return SilentBackend()

        self.client, self.clock = client or Client(), SteppedClock()
        head = (heads or UnfinishedHeads()).of(self.client.note_request)
        proxy = HttpProxy(self.client, Router(), open_backend, self.clock, head)
        self.task = asyncio.create_task(proxy.serve("192.0.2.7", 80, uses_tls=False))

    async def send(self, data):
        self.client.queue.put_nowait(data)
        await yield_to_loop(20)

    async def advance(self, seconds):
        self.clock.advance(seconds)
        await yield_to_loop(20)

    @property
    def has_ended(self):
        return self.task.done()


@pytest.fixture
async def served():
    found = []

    def serve(heads=None):
        found.append(Served(heads))
        return found[-1]

    yield serve
    for each in found:
        each.task.cancel()
    await asyncio.gather(*(each.task for each in found), return_exceptions=True)


async def test_client_that_sends_its_head_slowly_is_not_served_for_ever(served):
    slow = served()
    for _ in range(int(limits.HEAD_SECONDS) - 1):
        await slow.send(b"X")
        await slow.advance(1)
        assert not slow.has_ended
    await slow.send(b"X")
    await slow.advance(1)
    assert (slow.has_ended, slow.client.received) == (True, b"")


async def test_silent_client_and_empty_lines_are_not_served_for_ever(served):
    silent, sender = served(), served()
    await yield_to_loop()
    await silent.advance(limits.HEAD_SECONDS)
    for _ in range(int(limits.HEAD_SECONDS)):
        await sender.send(b"\r\n")
        await sender.advance(1)
    assert (silent.has_ended, sender.has_ended) == (True, True)


async def test_next_head_has_its_own_time(served):
    client = served()
    await client.advance(limits.HEAD_SECONDS - 1)
    await client.send(HEAD)
    await client.advance(limits.KEEP_ALIVE_SECONDS - 40)
    assert not client.has_ended, "it may wait for its next request"
    await client.send(HEAD[:5])
    await client.advance(limits.HEAD_SECONDS - 1)
    assert not client.has_ended
    await client.advance(1)
    assert client.has_ended


UPLOAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n"


async def test_body_that_does_not_arrive_gets_408(served):
    client = served()
    await client.send(UPLOAD)
    await client.advance(limits.BODY_SECONDS - 1)
    assert client.client.received == b""
    await client.advance(1)
    assert client.client.received.startswith(TOO_SLOW)


async def test_body_of_a_byte_a_second_gets_408(served):
    client = served()
    await client.send(UPLOAD)
    for _ in range(int(limits.BODY_SECONDS)):
        assert client.client.received == b""
        await client.advance(1)
        await client.send(b"x")
    await client.advance(1)
    assert client.client.received.startswith(TOO_SLOW)


async def test_body_with_the_least_rate_has_all_the_time_that_it_takes(served):
    client = served()
    await client.send(UPLOAD)
    for _ in range(10):
        await client.advance(limits.BODY_SECONDS - 1)
        await client.send(b"x" * limits.MIN_BODY_RATE * int(limits.BODY_SECONDS - 1))
    assert client.client.received == b""


async def test_body_that_was_fast_is_cut_when_it_becomes_slow(served):
    client = served()
    await client.send(UPLOAD)
    await client.send(b"x" * 900_000)
    await client.advance(limits.BODY_SECONDS)
    assert client.client.received.startswith(TOO_SLOW)


async def test_unused_body_is_read_after_the_response_for_a_time(served):
    client = served()
    await client.send(UPLOAD.replace(b"POST", b"PUT"))
    assert client.client.received.startswith(b"HTTP/1.1 204 ")
    for _ in range(int(limits.LINGER_SECONDS)):
        assert not client.has_ended
        await client.send(b"x" * 10_000)
        await client.advance(1)
    assert client.has_ended


async def test_next_request_is_read_behind_an_unused_body(served):
    client = served()
    await client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab")
    await client.send(b"c" + HEAD)
    assert client.client.received.count(b"HTTP/1.1 204 ") == 2


async def test_unused_body_that_waits_for_permission_ends_the_connection(served):
    client = served()
    await client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    assert b"Connection: close\r\n" in client.client.received
    await client.send(HEAD + HEAD)
    assert client.client.received.count(b"HTTP/1.1 ") == 1


async def test_backend_has_time_once_the_body_was_sent(served):
    client = served()
    await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
    for _ in range(3):
        await client.advance(19)
        await client.send(b"x")
    await client.advance(59)
    assert client.client.received == b""
    await client.advance(61)
    assert client.client.received.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")


async def test_memory_of_unfinished_heads_is_bounded(served, monkeypatch):
    monkeypatch.setattr(limits, "ALL_HEADS", 3 * limits.SMALL_HEAD)
    heads = UnfinishedHeads()
    clients = [served(heads) for _ in range(5)]
    for client in clients:
        await client.send(HEAD[:-2] + b"X: " + b"a" * 2 * limits.SMALL_HEAD)
    refused = [client for client in clients if client.client.received.startswith(b"HTTP/1.1 431 ")]
    assert (len(refused), heads.size <= limits.ALL_HEADS) == (3, True)
    small = served(heads)
    await small.send(HEAD)
    assert small.client.received.startswith(b"HTTP/1.1 204 ")
    for client in clients:
        await client.send(b"")
    assert heads.size == 0


class Socket:
    """A connection of a client, without a socket."""

    def __init__(self, name):
        self.name = name
        self.address = "192.0.2.7"
        self.used_at = 0.0
        self.is_reset = False

    def reset(self):
        self.is_reset = True

    async def close(self):
        pass


@pytest.fixture
async def connections(monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 4)
    found = Connections(SteppedClock())
    yield found
    await found.end()


async def forward(_connection):
    await asyncio.get_running_loop().create_future()


def reset_by(connections, *, requests=(), used=(), addresses="aaaaaaa"):
    """Return the numbers of the connections that were reset once these were added; some have a request, or are used all the time."""
    sockets = [Socket(number) for number in range(len(addresses))]
    for socket, address in zip(sockets, addresses, strict=True):
        connections._clock.advance(1)
        socket.address, socket.used_at = address, connections._clock.monotonic()
        connections.add(socket, forward)
        if socket.name in requests:
            connections.head_of(socket).end()
        for number in {*used} & {*range(socket.name)}:
            sockets[number].used_at = socket.used_at
    return [socket.name for socket in sockets if socket.is_reset]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param({}, [0, 1, 2], id="the oldest"),
        pytest.param({"requests": (0, 2)}, [1, 3, 4], id="none with a request"),
        pytest.param({"used": (0, 2)}, [1, 3, 4], id="the longest idle"),
        pytest.param({"requests": range(7)}, [0, 1, 2], id="the oldest with a request"),
        pytest.param({"addresses": "babbbab"}, [0, 2, 3], id="of the address with most"),
        pytest.param({"addresses": "babbbbb", "requests": (2, 3)}, [0, 4, 5], id="idle, of that address"),
    ],
)
async def test_connection_beyond_the_limit_ends_an_idle_one(connections, conditions, expected):
    assert reset_by(connections, **conditions) == expected
    await yield_to_loop(5)
    assert len(connections) == 4


async def test_client_that_does_not_read_its_response_is_disconnected():
    served = Served(client=DeafClient())
    await served.send(HEAD)
    await served.advance(limits.RESPONSE_SECONDS - 1)
    assert not served.task.done()
    await served.advance(1)
    with pytest.raises(StreamsClosed):
        await served.task


async def test_closed_connection_of_a_client_that_does_not_read_is_reset():
    clock, connections = SteppedClock(), asyncio.Queue()
    listener = create_server(("127.0.0.1", 0))
    server = await accept(listener, clock, connections.put_nowait)
    with create_connection(listener.getsockname()):
        connection = await connections.get()
        writing = asyncio.create_task(connection.write(b"x" * (64 << 20)))
        await yield_to_loop(20)
        writing.cancel()
        closing = asyncio.create_task(connection.close())
        await yield_to_loop(20)
        assert not closing.done()
        clock.advance(limits.RESPONSE_SECONDS)
        await closing
        assert connection.departure.is_set()
    server.close()


async def test_connection_has_a_request_from_its_head_to_its_response(served):
    client = served()
    await yield_to_loop(5)
    assert not client.client.has_request
    await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
    assert client.client.has_request, "it waits for its body"
    other = served()
    await other.send(HEAD)
    assert not other.client.has_request, "it waits for its next head"


def test_small_head_has_room_when_others_use_all_memory():
    heads = UnfinishedHeads()
    large, small = (heads.of(lambda **_: None) for _ in (1, 2))
    assert large.has_room(limits.SMALL_HEAD + limits.ALL_HEADS)
    assert not large.has_room(limits.SMALL_HEAD + limits.ALL_HEADS + 1)
    assert small.has_room(limits.SMALL_HEAD)
    assert not small.has_room(limits.SMALL_HEAD + 1)
    large.end()
    assert small.has_room(limits.SMALL_HEAD + 1)
