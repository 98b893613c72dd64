"""The end of listening: requests are answered first, and neither a connection nor a handshake outlives it."""

import asyncio
import contextlib
import math
import ssl

import pytest

from mockube.apiserver.http.server import SHUTDOWN_SECONDS, Listener, Server, bind, listening
from mockube.apiserver.request.response import text_response
from mockube.component_base.clock import SteppedClock
from tests.integration.test_listening import BEGINNING_OF_A_HANDSHAKE, GET, certificates
from tests.support.event_loop import WAIT_TIMEOUT, until, yield_to_loop

DRAIN_SECONDS = 10.0
SECONDS_OF_ASYNCIO = 30.0
"""After these asyncio itself disconnects a client that does not answer the end of a TLS session."""


class BlockingServer:
    """A server that responds when the test allows it, and that ends when the test asks for it."""

    def __init__(self, *, tls=None, before_drain=lambda _blocking_server: None):
        self.clock = SteppedClock()
        self.requests = 0
        self.going = asyncio.Event()
        self.server = Server(self._handle)
        self.listener = Listener(socket=bind("127.0.0.1", 0), tls=tls)
        self.ending = None
        self._stack = contextlib.AsyncExitStack()
        self._before_drain = before_drain
        self._writers = []

    async def _handle(self, _request):
        self.requests += 1
        await self.going.wait()
        return text_response("done")

    async def begin(self):
        opened = listening(
            self.server,
            [self.listener],
            clock=self.clock,
            drain_seconds=DRAIN_SECONDS,
            before_drain=lambda: self._before_drain(self),
            supervise=running,
        )
        await self._stack.enter_async_context(opened)

    def end(self):
        self.ending = asyncio.create_task(self._stack.aclose())
        return self.ending

    async def connect(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        self._writers.append(writer)
        return reader, writer

    async def request(self):
        reader, writer = await self.connect()
        writer.write(GET)
        await until(lambda: self.requests == 1)
        return reader

    async def close(self):
        """Also after a failed test, whose server may wait for the clock or may not have been asked to end."""
        self.going.set()
        for writer in self._writers:
            writer.transport.abort()
        ending = self.ending or self.end()
        while not ending.done():
            self.clock.advance(DRAIN_SECONDS)
            await yield_to_loop()
        await asyncio.gather(ending, return_exceptions=True)


@contextlib.asynccontextmanager
async def running(work):
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def start():
    blocking_servers = []

    async def start(**settings):
        blocking_servers.append(blocking_server := BlockingServer(**settings))
        await blocking_server.begin()
        return blocking_server

    yield start
    for blocking_server in blocking_servers:
        await blocking_server.close()


async def shake_hands(reader, writer):
    """Complete a TLS handshake, and answer nothing from then on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, sent)
    is_complete = False
    while not is_complete:
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
            is_complete = True
        writer.write(sent.read())
        if not is_complete:
            received.write(await reader.read(1 << 16))


async def test_begun_request_is_answered_and_its_connection_closed(start):
    blocking_server = await start()
    reader = await blocking_server.request()
    ending = blocking_server.end()
    await yield_to_loop(50)
    assert not ending.done()
    blocking_server.going.set()
    async with asyncio.timeout(WAIT_TIMEOUT):
        response = await reader.read()
        await ending
    assert response.endswith(b"done")
    assert b"Connection: close\r\n" in response


async def test_request_that_is_not_answered_is_given_up_at_deadline(start):
    blocking_server = await start()
    await blocking_server.request()
    ending = blocking_server.end()
    await yield_to_loop(50)
    blocking_server.clock.advance(DRAIN_SECONDS - 1)
    await yield_to_loop(50)
    assert not ending.done()
    blocking_server.clock.advance(1)
    async with asyncio.timeout(WAIT_TIMEOUT):
        await ending


async def test_streams_end_before_responses_are_awaited(start):
    blocking_server = await start(before_drain=lambda blocking_server: blocking_server.going.set())
    reader = await blocking_server.request()
    ending = blocking_server.end()
    await yield_to_loop(50)
    assert blocking_server.going.is_set()
    async with asyncio.timeout(WAIT_TIMEOUT):
        assert (await reader.read()).endswith(b"done")
        await ending


async def test_server_ends_as_soon_as_last_client_has_closed(start):
    blocking_server = await start(tls=certificates())
    reader, writer = await blocking_server.connect()
    await shake_hands(reader, writer)
    await until(lambda: blocking_server.server.connections)
    ending = blocking_server.end()
    await until(lambda: blocking_server.clock.next_due() is not None)
    writer.transport.abort()
    async with asyncio.timeout(WAIT_TIMEOUT):
        await ending


async def test_client_that_does_not_close_is_disconnected(start):
    blocking_server = await start(tls=certificates())
    reader, writer = await blocking_server.connect()
    await shake_hands(reader, writer)
    await until(lambda: blocking_server.server.connections)
    ending = blocking_server.end()
    await until(lambda: (blocking_server.clock.next_due() or math.inf) <= SHUTDOWN_SECONDS)
    blocking_server.clock.advance(SHUTDOWN_SECONDS)
    async with asyncio.timeout(SECONDS_OF_ASYNCIO / 2):
        with contextlib.suppress(ConnectionError):
            await reader.read()
        await ending


async def test_handshakes_end_with_listener(start):
    blocking_server = await start(tls=certificates())
    _, writer = await blocking_server.connect()
    writer.write(BEGINNING_OF_A_HANDSHAKE)
    await until(lambda: len(blocking_server.server.unauthenticated) == 1)
    async with asyncio.timeout(WAIT_TIMEOUT):
        await blocking_server.end()
    assert "a TLS handshake" not in {task.get_name() for task in asyncio.all_tasks()}
