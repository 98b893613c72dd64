"""Accepted connections and their idle timeout, on a loop whose clock the test advances."""

import asyncio
import contextlib
import errno
import logging
from functools import partial

import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.background_tasks import TASKS
from mockube.apiserver.http.server import (
    HEAD_SECONDS,
    IDLE_SECONDS,
    RECOVERY_SECONDS,
    Listener,
    Server,
    bind,
    listening,
)
from mockube.apiserver.pki.issue import make_authority
from mockube.apiserver.pki.reloading import ServingCertificates
from mockube.apiserver.request.response import text_response
from mockube.component_base.clock import RealClock, SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.task_supervisor import FIRST_DELAY, TaskSupervisor
from tests.support.event_loop import WAIT_TIMEOUT, until, yield_to_loop

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
BEGINNING_OF_A_HANDSHAKE = b"\x16\x03\x01\x02\x00\x01\x00"
LITTLE = 20.0
"""Seconds: longer than any test here takes by a real clock, and shorter than every limit."""


def certificates():
    authority = make_authority("test", now=RealClock().now(), random=SystemRandom())
    return ServingCertificates(authority, authority.certificate)


class Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        super().__init__()
        self.ahead = 0.0
        self.failures = []
        """Errors that the next calls of accept raise."""
        self.handshake_failures = []

    def time(self):
        return super().time() + self.ahead

    async def sock_accept(self, sock):
        if self.failures:
            raise self.failures.pop()
        return await super().sock_accept(sock)

    async def connect_accepted_socket(self, *args, **fields):
        if self.handshake_failures:
            raise self.handshake_failures.pop()
        return await super().connect_accepted_socket(*args, **fields)


class ListeningServer:
    def __init__(self, *, tls=None, clock=None):
        async def handle(_request):
            return text_response("done")

        self.loop = asyncio.get_running_loop()
        self.server = Server(handle)
        self.listener = Listener(socket=bind("127.0.0.1", 0), tls=tls)
        self.clock = clock or RealClock()
        self.supervisor = TaskSupervisor(self.clock, TASKS, MetricsRegistry())
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self):
        await self._stack.enter_async_context(self.supervisor.running())
        opened = listening(
            self.server,
            [self.listener],
            clock=self.clock,
            drain_seconds=0,
            before_drain=lambda: None,
            supervise=partial(self.supervisor.run_in_block, "listeners"),
        )
        await self._stack.enter_async_context(opened)
        return self

    async def __aexit__(self, *exc):
        await self._stack.aclose()

    async def connect(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        self._stack.callback(abort, writer)
        return reader, writer


def abort(writer):
    writer.transport.abort()


def run(scenario):
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(scenario())


async def read_until_closed(reader):
    async with asyncio.timeout(WAIT_TIMEOUT):
        return await reader.read()


@pytest.mark.parametrize("sent", [b"", BEGINNING_OF_A_HANDSHAKE], ids=["nothing", "its beginning"])
def test_stalled_handshake_is_closed(sent):
    async def scenario():
        async with ListeningServer(tls=certificates()) as listening_server:
            reader, writer = await listening_server.connect()
            writer.write(sent)
            await until(lambda: len(listening_server.server.unauthenticated) == 1)
            listening_server.loop.ahead += HEAD_SECONDS - LITTLE
            await yield_to_loop(50)
            assert (len(listening_server.server.unauthenticated), reader.at_eof()) == (1, False)
            listening_server.loop.ahead += LITTLE
            assert await read_until_closed(reader) == b""
            assert len(listening_server.server.unauthenticated) == 0

    run(scenario)


PLAIN_HTTP = {
    "GET": [GET],
    "OPTIONS in pieces": [b"OP", b"TIONS / HTTP/1.1\r\n\r\n"],
    "POST with a body": [b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000],
}


@pytest.mark.parametrize("pieces", PLAIN_HTTP.values(), ids=PLAIN_HTTP)
def test_plain_http_on_tls_port_is_answered_as_by_go(pieces):
    async def scenario():
        async with ListeningServer(tls=certificates()) as listening_server:
            reader, writer = await listening_server.connect()
            for piece in pieces:
                writer.write(piece)
                await yield_to_loop(50)
            assert await read_until_closed(reader) == (
                b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
            )
            await until(lambda: len(listening_server.server.unauthenticated) == 0)

    run(scenario)


@pytest.mark.parametrize("sent", [b"DELETE / HTTP/1.1\r\n\r\n", b"GET index", b"\0\1\2\3\4\5"])
def test_other_bytes_on_tls_port_end_connection_without_plain_text(sent):
    async def scenario():
        async with ListeningServer(tls=certificates()) as listening_server:
            reader, writer = await listening_server.connect()
            writer.write(sent)
            with contextlib.suppress(ConnectionResetError):
                assert b"HTTP" not in await read_until_closed(reader)

    run(scenario)


def test_client_that_sends_nothing_and_closes_is_forgotten():
    async def scenario():
        async with ListeningServer(tls=certificates()) as listening_server:
            for beginning in (b"", b"GE"):
                reader, writer = await listening_server.connect()
                writer.write(beginning)
                writer.write_eof()
                assert await read_until_closed(reader) == b""
            await until(lambda: len(listening_server.server.unauthenticated) == 0)

    run(scenario)


def test_idle_connection_is_closed():
    async def scenario():
        async with ListeningServer() as listening_server:
            reader, writer = await listening_server.connect()
            for _ in range(2):  # each request restarts the idle timeout
                listening_server.loop.ahead += IDLE_SECONDS - LITTLE
                await yield_to_loop(50)
                writer.write(GET)
                async with asyncio.timeout(WAIT_TIMEOUT):
                    assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 OK\r\n")
            assert not reader.at_eof()
            listening_server.loop.ahead += IDLE_SECONDS
            assert await read_until_closed(reader) == b""

    run(scenario)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_exhausted_file_descriptors_close_one_connection_and_resume(number, caplog):
    async def scenario():
        clock = SteppedClock()
        async with ListeningServer(clock=clock) as listening_server:
            waiting, _ = await listening_server.connect()
            await until(lambda: len(listening_server.server.unauthenticated) == 1)
            listening_server.loop.failures.append(OSError(number, "no more"))
            await listening_server.connect()  # the pending call accepts it, the next one fails
            async with asyncio.timeout(HEAD_SECONDS / 2):  # before it is closed for being silent
                assert await waiting.read() == b""
            reader, writer = await listening_server.connect()
            writer.write(GET)
            await yield_to_loop(50)
            assert clock.next_due() == RECOVERY_SECONDS
            clock.advance(RECOVERY_SECONDS)
            async with asyncio.timeout(WAIT_TIMEOUT):
                assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 OK\r\n")

    run(scenario)
    levels = [
        record.levelno for record in caplog.records if "no connection can be accepted" in record.message
    ]
    assert levels == [logging.WARNING]


def test_client_gone_before_accept_changes_nothing(caplog):
    async def scenario():
        async with ListeningServer() as listening_server:
            listening_server.loop.failures.append(OSError(errno.ECONNABORTED, "gone"))
            for _ in range(2):
                reader, writer = await listening_server.connect()
                writer.write(GET)
                async with asyncio.timeout(WAIT_TIMEOUT):
                    assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 OK\r\n")

    run(scenario)
    assert not caplog.records


def test_connection_evicted_before_start_is_closed():
    """All waiting connections are accepted in one iteration of the loop."""

    async def scenario():
        async with ListeningServer() as listening_server:
            listening_server.server.unauthenticated.maximum = 1
            found = await asyncio.gather(*(listening_server.connect() for _ in range(5)))
            for reader, _ in found[:-1]:
                assert await read_until_closed(reader) == b""

    run(scenario)


async def is_served(listening_server):
    reader, writer = await listening_server.connect()
    writer.write(GET)
    async with asyncio.timeout(WAIT_TIMEOUT):
        return (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 OK\r\n")


def logged_faults(caplog):
    texts = map(caplog.handler.format, caplog.records)
    return [text for text in texts if "Traceback" in text and "RuntimeError: a fault in the program" in text]


def test_failed_acceptor_is_named_and_starts_again(caplog):
    async def scenario():
        clock = SteppedClock()
        async with ListeningServer(clock=clock) as listening_server:
            assert await is_served(listening_server)  # the next call of accept is waiting now
            listening_server.loop.failures.append(RuntimeError("a fault in the program"))
            await listening_server.connect()
            await until(lambda: listening_server.supervisor.problem("listeners"))
            clock.advance(FIRST_DELAY)
            assert await is_served(listening_server)
            assert not listening_server.supervisor.problem("listeners")

    run(scenario)
    (entry,) = logged_faults(caplog)
    assert "The task 'listeners' failed" in entry


def test_acceptor_that_is_cancelled_is_named_and_starts_again(caplog):
    """As by what it awaits: a group of tasks ignores that, and the listener would accept no more connections."""

    async def scenario():
        clock = SteppedClock()
        async with ListeningServer(clock=clock) as listening_server:
            assert await is_served(listening_server)
            (acceptor,) = (task for task in asyncio.all_tasks() if task.get_name() == "accept connections")
            acceptor.cancel()
            await until(lambda: listening_server.supervisor.problem("listeners"))
            clock.advance(FIRST_DELAY)
            assert await is_served(listening_server)

    run(scenario)
    assert "a listener accepts no more connections" in caplog.text


def test_failed_handshake_closes_its_connection_alone(caplog):
    async def scenario():
        async with ListeningServer() as listening_server:
            listening_server.loop.handshake_failures.append(RuntimeError("a fault in the program"))
            reader, _ = await listening_server.connect()
            assert await read_until_closed(reader) == b""
            assert len(listening_server.server.unauthenticated) == 0
            assert await is_served(listening_server)

    run(scenario)
    (entry,) = logged_faults(caplog)
    assert "a connection could not be opened" in entry


def test_failed_handshake_of_client_leaves_log_empty(caplog):
    async def scenario():
        async with ListeningServer(tls=certificates()) as listening_server:
            reader, writer = await listening_server.connect()
            writer.write(GET)
            await read_until_closed(reader)
            await until(lambda: len(listening_server.server.unauthenticated) == 0)

    run(scenario)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
