"""Exec and attach: which protocol a client gets, and what becomes of a command whose client leaves."""

import asyncio

import orjson
import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.streams import InputStream, StreamsClosed, TerminalSizes
from mockube.kubelet.server import remote_command
from mockube.kubelet.server.http_errors import HttpError
from mockube.kubelet.server.remote_command import StreamServer, stream_options
from mockube.kubelet.server.sessions import Sessions
from tests.support.event_loop import yield_to_loop


@pytest.mark.parametrize(
    ("query", "streams", "tty"),
    [
        ({"input": "1"}, {0}, False),
        ({"output": "true", "error": "1"}, {1, 2}, False),
        ({"output": "1", "error": "1", "tty": "1"}, {1, 4}, True),
        ({"input": "1", "tty": "true"}, {0, 4}, True),
        ({"input": "yes", "output": "1", "tty": "yes"}, {1}, False),
    ],
)
def test_streams_that_a_client_asks_for(query, streams, tty):
    options = stream_options(query)
    assert (options.streams, options.tty) == (streams, tty)


@pytest.mark.parametrize("query", [{}, {"input": "0"}, {"tty": "1"}, {"error": "1", "tty": "1"}])
def test_request_without_a_stream_is_refused(query):
    with pytest.raises(HttpError, match="at least 1 of stdin, stdout, stderr"):
        stream_options(query)


OPTIONS = stream_options({"output": "1"})
NO_PROTOCOL = "requested protocol(s) are not supported: ['a', 'b', 'c']"


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ([], 400, "unable to upgrade: missing upgrade headers in request"),
        ([("Upgrade", "h2c")], 400, "unable to upgrade: missing upgrade headers in request"),
        (
            [
                ("Upgrade", "WebSocket"),
                ("Sec-WebSocket-Protocol", "a, b"),
                ("Sec-WebSocket-Protocol", "c"),
            ],
            403,
            NO_PROTOCOL,
        ),
        (
            [("Upgrade", "spdy/3.1"), ("X-Stream-Protocol-Version", "a, b")],
            403,
            "unable to upgrade: unable to negotiate protocol: client supports ['a', 'b']",
        ),
    ],
)
async def test_protocol_that_is_not_there_is_refused(headers, status, message):
    server = StreamServer(SteppedClock(), Sessions())
    request = make_mocked_request("POST", "/exec", CIMultiDict(headers))
    with pytest.raises(HttpError) as error:
        await server.serve(request, OPTIONS, None)
    assert (error.value.code, str(error.value)[: len(message)]) == (status, message)


class Streams:
    """The streams of a client, which leaves when a test sets `leaves`. `is_slow` receives nothing."""

    def __init__(self, *, stdin=True, is_slow=False):
        self.stdin = InputStream() if stdin else None
        self.sizes, self.departure = TerminalSizes(), asyncio.Event()
        self.leaves, self.status, self.is_slow = asyncio.Event(), None, is_slow
        self.problem = None

    async def listen(self):
        await self.leaves.wait()
        if self.problem is not None:
            raise self.problem

    async def finish(self, status):
        self.status = status
        if self.is_slow:
            await asyncio.Event().wait()


class Served:
    def __init__(self, streams, work):
        self.clock, self.sessions, self.streams = SteppedClock(), Sessions(), streams
        self.server = StreamServer(self.clock, self.sessions)
        self.task = asyncio.create_task(
            self.server._run(streams, remote_command._run_work(streams, work), streams.listen())
        )

    async def after(self, seconds):
        await yield_to_loop(10)
        self.clock.advance(seconds)
        await yield_to_loop(10)
        return self.task.done()


@pytest.fixture
def finish():
    return asyncio.Event()


@pytest.fixture
def work(finish):
    async def run(_):
        await finish.wait()
        return b"done"

    return run


async def test_client_gets_the_status_and_may_linger(work, finish):
    served = Served(Streams(), work)
    assert not await served.after(100)
    finish.set()
    assert not await served.after(remote_command.LINGER_SECONDS - 1)
    assert served.streams.status == b"done"
    assert await served.after(2)
    assert not served.sessions._tasks


async def test_session_ends_when_the_client_closes_it(work, finish):
    served = Served(Streams(), work)
    finish.set()
    await served.after(0)
    served.streams.leaves.set()
    assert await served.after(0)


async def test_command_of_a_client_that_leaves_may_end_for_a_moment_and_then_continues(work, finish):
    served = Served(Streams(), work)
    await yield_to_loop(5)
    served.streams.leaves.set()
    assert not await served.after(remote_command.LEAVE_SECONDS - 1)
    assert await served.after(2)
    assert served.streams.status == b""
    assert (await served.streams.stdin.read(1), await served.streams.sizes.next()) == (b"", None)
    (command,) = served.sessions._left
    finish.set()
    assert await command == b"done"


async def test_command_that_ends_with_its_client_has_its_status(work, finish):
    served = Served(Streams(stdin=False), work)
    await yield_to_loop(5)
    served.streams.leaves.set()
    assert not await served.after(0)
    finish.set()
    assert await served.after(0)
    assert served.streams.status == b"done"


async def test_client_that_has_left_and_reads_nothing_is_not_awaited(work, finish):
    served = Served(Streams(is_slow=True), work)
    finish.set()
    served.streams.leaves.set()
    assert not await served.after(remote_command.LEAVE_SECONDS - 1)
    assert await served.after(2)


async def test_error_of_the_connection_ends_the_command(work):
    streams = Streams()
    streams.problem = ValueError("no frame")
    served = Served(streams, work)
    streams.leaves.set()
    await served.after(remote_command.LINGER_SECONDS)
    assert orjson.loads(streams.status)["message"] == "Internal error occurred: ValueError: no frame"
    assert not served.sessions._left
    assert await served.after(0)
    assert not served.sessions._tasks


@pytest.mark.parametrize(
    ("error", "status"), [(StreamsClosed(), b""), (KeyError("a"), b"Internal error occurred: KeyError: 'a'")]
)
async def test_command_that_fails(error, status):
    async def run(_):
        raise error

    served = Served(Streams(), run)
    await served.after(remote_command.LINGER_SECONDS + 1)
    assert status in served.streams.status
    assert served.task.done()


async def test_end_of_the_server_ends_the_command_and_the_listener(work):
    served = Served(Streams(), work)
    await yield_to_loop(5)
    served.task.cancel()
    await yield_to_loop(10)
    assert served.task.cancelled()
    assert not served.sessions._tasks
