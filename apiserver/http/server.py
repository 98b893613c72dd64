"""The HTTP server: listening sockets, limits of what its connections cost, and graceful shutdown.

When aiohttp's server closes its connections, it drops responses that are still being written. So they are closed only
after all requests that have begun are answered.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Final

from aiohttp import StreamReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct

from mockube.apiserver.pki.reloading import ServingCertificates
from mockube.apiserver.request.filter import Handle
from mockube.apiserver.request.response import Response
from mockube.component_base.aiohttp_protocol import MalformedRequest, Message, message_of
from mockube.component_base.clock import Clock, RealClock, Timer
from mockube.component_base.connection_limit import ConnectionLimit

from .adapter import SocketClient, expectation_failed, is_continue
from .connection import HEAD_BYTES, LINGER_SECONDS, PARSED_HEADERS, Connection
from .plain_http import refuse_plain_http
from .response import Refusal, refusal_of_request

LOG = logging.getLogger(__name__)

BACKLOG = 1024
MAX_CONNECTIONS: Final = 4000
"""Connections without an authenticated request, while none of their requests is being served: more than the clients that start together on one machine, fewer than what fills its memory."""
HEAD_SECONDS: Final = 32.0
"""How long a client may take to send a head, counted for the first one from the connection on; as upstream."""
IDLE_SECONDS: Final = 90.0
"""How long a connection may wait for its next request."""
STALLED_SECONDS: Final = 30.0
"""How long a client may read nothing of its response."""
SWEEP_SECONDS: Final = 4.0
"""The interval of the checks of HEAD_SECONDS and STALLED_SECONDS."""
SHUTDOWN_SECONDS = 0.02
"""How long a shutdown waits after its deadline for responses and for open connections."""
RECOVERY_SECONDS = 0.1
"""The pause of accepting connections when the system has no socket left."""
READ_BUFFER: Final = 64 * 1024
"""Bytes of a body that are read ahead; twice as many at most."""
ALL_HEADS_BYTES: Final = 64 << 20
"""The limit of the long heads of all connections together."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Listener(Struct, frozen=True, kw_only=True):
    """A bound socket, with or without TLS."""

    socket: socket.socket
    tls: ServingCertificates | None = None

    @property
    def port(self) -> int:
        port: int = self.socket.getsockname()[1]
        return port


def bind(address: str, port: int) -> socket.socket:
    """Bind a port without accepting connections. Port 0 is any free one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)


class Server(web.Server):
    """aiohttp's server, with limits of what its connections cost. `clock` is that of sockets; only tests step it."""

    def __init__(self, handle: Handle, *, clock: Clock | None = None) -> None:
        super().__init__(_never_called)
        self._event_loop = asyncio.get_running_loop()
        self.clock = clock or RealClock()
        self.head_bytes = 0
        """Bytes of long heads that are not complete yet."""
        self.unauthenticated = ConnectionLimit(MAX_CONNECTIONS)
        self._handle = handle
        self._answering = 0
        self._idle = asyncio.Event()
        self._draining = False
        self._open: dict[Connection, asyncio.Transport] = {}
        self._empty = asyncio.Event()
        self._stalled: dict[Connection, tuple[int, int, float]] = {}
        """By connection whose client does not read: its drains, the bytes in its buffer, and the time of the last progress."""
        self._sweeping: Timer | None = None

    def __call__(self) -> Connection:
        return Connection(
            self,
            loop=self._event_loop,
            logger=LOG,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
            max_headers=PARSED_HEADERS,
            read_bufsize=READ_BUFFER,
            keepalive_timeout=IDLE_SECONDS,
            access_log=None,
            auto_decompress=False,  # as upstream: compressed bodies are not decompressed, so that none can be a decompression bomb
        )

    def has_room_for_heads(self) -> bool:
        return self.head_bytes <= ALL_HEADS_BYTES

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        assert isinstance(handler, Connection)
        super().connection_made(handler, transport)
        self._open[handler] = transport
        handler.head_since = self.clock.monotonic()
        self.add_unauthenticated(handler)
        if self._sweeping is None:
            self._sweeping = self.clock.call_later(SWEEP_SECONDS, self._sweep)

    def add_unauthenticated(self, connection: Connection) -> None:
        """Count a connection as unauthenticated, while none of its requests is being served."""
        transport = connection.transport
        if transport is not None:
            self.unauthenticated.add(connection, connection.address, transport.close)

    def discard_unauthenticated(self, connection: Connection) -> None:
        self.unauthenticated.discard(connection)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        assert isinstance(handler, Connection)
        super().connection_lost(handler, exc)
        handler.release_head()
        self.unauthenticated.discard(handler)
        self._stalled.pop(handler, None)
        self._open.pop(handler, None)
        if not self._open:
            self._empty.set()
        if handler.on_lost is not None:
            handler.on_lost()

    def _sweep(self) -> None:
        """Close connections whose clients do not complete a head or do not read."""
        # The next check is scheduled first, so that an error in this one, which the loop logs, does not end the checks.
        self._sweeping = self.clock.call_later(SWEEP_SECONDS, self._sweep) if self._open else None
        now = self.clock.monotonic()
        for connection, transport in [*self._open.items()]:
            since = connection.head_since
            if since is not None and now - since >= HEAD_SECONDS:
                transport.abort()
            elif connection.writing_paused:
                self._check_progress(connection, transport, now)

    def _check_progress(self, connection: Connection, transport: asyncio.Transport, now: float) -> None:
        pending_bytes = transport.get_write_buffer_size()
        drains, minimum, since = self._stalled.get(connection, (-1, 0, now))
        if drains != connection.drains or pending_bytes < minimum:
            self._stalled[connection] = (connection.drains, pending_bytes, now)
        elif now - since >= STALLED_SECONDS:
            LOG.debug("a client did not read for %.0f s and was disconnected", now - since)
            connection.is_cut = True
            transport.abort()

    async def drain(self, clock: Clock, seconds: float) -> None:
        """Close each connection after its next response, and wait up to `seconds` for all responses."""
        self._draining = True
        if not self._answering:
            return
        timer = clock.call_later(seconds, self._idle.set)
        await self._idle.wait()
        timer.cancel()

    async def abort_open(self, clock: Clock, seconds: float) -> None:
        """Wait up to `seconds` until all connections are closed, and abort those that are still open.

        With TLS both sides have to send close_notify, which a busy or idle client does not.
        """
        await self._wait_empty(clock, seconds)
        for transport in [*self._open.values()]:
            transport.abort()
        await self._wait_empty(clock, seconds)

    async def _wait_empty(self, clock: Clock, seconds: float) -> None:
        if not self._open:
            return
        self._empty.clear()
        timer = clock.call_later(seconds, self._empty.set)
        await self._empty.wait()
        timer.cancel()

    async def serve(self, connection: Connection, message: Message, payload: StreamReader) -> bool:
        """Write the response to a request; return whether the connection can serve another one."""
        client = SocketClient(connection, message_of(message), payload)
        if isinstance(message, MalformedRequest):
            response: Response = connection.refuse_malformed()
        else:
            response = await self._respond(client)
        await client.finish(response)
        if connection.writing_paused:
            await connection.drain()
        if isinstance(response, Refusal):
            await self.clock.sleep(LINGER_SECONDS)
            return False
        return client.keeps_open

    async def _respond(self, client: SocketClient) -> Response:
        self._answering += 1
        message = client.message
        expects = message.headers.get(hdrs.EXPECT)
        refusal = refusal_of_request(message)
        try:
            if refusal:
                return client.refuse(refusal)
            if expects and not is_continue(expects):
                client.keeps_open = False
                return expectation_failed()
            return await self._handle(client.request())
        finally:
            if expects and not client.payload.is_eof():
                client.keeps_open = False  # the client may send the body nevertheless, or not
            self._answering -= 1
            if self._draining:
                client.keeps_open = False
                if not self._answering:
                    self._idle.set()


Supervise = Callable[[Callable[[], Coroutine[None, None, None]]], AbstractAsyncContextManager[None]]
"""Runs a task within a block, and starts it again when it fails."""


@asynccontextmanager
async def listening(
    server: Server,
    listeners: Sequence[Listener],
    *,
    clock: Clock,
    drain_seconds: float,
    before_drain: Callable[[], None],
    supervise: Supervise,
) -> AsyncIterator[None]:
    """Serve until the context ends; then accept no more connections, and wait until all requests are answered.

    `before_drain` ends streams, which would never end otherwise. `supervise` runs the task that accepts connections, and
    restarts it when it fails.
    """

    async def accept() -> None:
        async with asyncio.TaskGroup() as group:
            acceptors = [
                group.create_task(Acceptor(server, listener, clock).run(), name="accept connections")
                for listener in listeners
            ]
            # The group ignores tasks that return, and tasks whose awaited operation was cancelled.
            await asyncio.wait(acceptors, return_when=asyncio.FIRST_COMPLETED)
            raise RuntimeError("a listener accepts no more connections")

    with suppress_connection_loss_warnings():
        try:
            async with supervise(accept):
                yield
        finally:
            for listener in listeners:
                listener.socket.close()
            before_drain()
            await server.drain(clock, drain_seconds)
            server.pre_shutdown()
            await server.shutdown(SHUTDOWN_SECONDS)
            await server.abort_open(clock, SHUTDOWN_SECONDS)


class Acceptor:
    """Accepts the connections of one listener. During its TLS handshake a connection counts as unauthenticated."""

    def __init__(self, server: Server, listener: Listener, clock: Clock) -> None:
        self._server = server
        self._listener = listener
        self._clock = clock
        self._opening: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop, listening_socket = asyncio.get_running_loop(), self._listener.socket
        listening_socket.setblocking(False)  # noqa: FBT003 - the standard library's
        try:
            while True:
                try:
                    accepted, address = await loop.sock_accept(listening_socket)
                except OSError as error:
                    await self._recover(error)
                    continue
                self._open(accepted, str(address[0]))
        finally:
            for task in self._opening:
                task.cancel()

    async def _recover(self, error: OSError) -> None:
        """If the system has no socket left, close an unauthenticated connection and pause."""
        if error.errno not in _EXHAUSTED:
            return  # the client has disconnected
        LOG.warning("no connection can be accepted: %s", error)
        self._server.unauthenticated.evict()
        await self._clock.sleep(RECOVERY_SECONDS)

    def _open(self, accepted: socket.socket, address: str) -> None:
        task = asyncio.create_task(self._handshake(accepted), name="a TLS handshake")
        self._opening.add(task)
        self._server.unauthenticated.add(task, address, task.cancel)
        task.add_done_callback(partial(self._on_opened, accepted))
        if self._listener.tls is not None:
            timer = self._clock.call_later(HEAD_SECONDS, partial(_cancel, task))
            task.add_done_callback(lambda _: timer.cancel())

    def _on_opened(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        self._server.unauthenticated.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            LOG.error("a connection could not be opened", exc_info=error)
        if error is not None or task.cancelled():  # a task that had not begun has closed nothing
            accepted.close()

    async def _handshake(self, accepted: socket.socket) -> None:
        tls = self._listener.tls
        connect = asyncio.get_running_loop().connect_accepted_socket
        try:
            if tls is None:
                await connect(self._server, accepted)
            elif not await refuse_plain_http(accepted):
                await connect(self._server, accepted, ssl=tls.context, ssl_handshake_timeout=HEAD_SECONDS)
        except (OSError, TimeoutError) as error:
            LOG.debug("a TLS handshake failed: %s", error)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _is_not_malformed_request(record: logging.LogRecord) -> bool:
    """Drop aiohttp's error logs of malformed requests, with which any client could fill the log."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, HttpProcessingError | web.RequestPayloadError):
        return True
    LOG.debug("a malformed HTTP request was refused: %s", error)
    return False


LOG.addFilter(_is_not_malformed_request)


@contextmanager
def suppress_connection_loss_warnings() -> Iterator[None]:
    """Drop asyncio's warnings about writes to a closed TLS connection: one for each piece of a response."""

    def is_not_connection_loss(record: logging.LogRecord) -> bool:
        return record.msg != "SSL connection is closed"

    logger = logging.getLogger("asyncio")
    logger.addFilter(is_not_connection_loss)
    try:
        yield
    finally:
        logger.removeFilter(is_not_connection_loss)


async def _never_called(_request: web.BaseRequest) -> web.StreamResponse:
    raise AssertionError("connections serve their requests themselves")
