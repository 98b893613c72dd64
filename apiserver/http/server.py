"""aiohttp's server, which besides bounds what its connections cost, and can be drained.

When aiohttp itself closes connections it drops what is still being sent to it, so they are not closed before all
requests that have begun are answered.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from mockube.apimachinery.clock import Clock, RealClock, Timer
from mockube.apiserver.http import refusals
from mockube.apiserver.http.adapter import SocketClient, expectation_failed, is_continue
from mockube.apiserver.http.authorities import Authorities
from mockube.apiserver.http.connection import HEAD_BYTES, HEADERS, Connection
from mockube.apiserver.request.filter import Handle
from mockube.apiserver.request.response import Response

LOG = logging.getLogger(__name__)

HEAD_SECONDS: Final = 32.0
"""How long a client may take to send a head, the first one from its connection on; as upstream, like the next."""
IDLE_SECONDS: Final = 90.0
"""How long a connection may wait for its next request."""
STALLED_SECONDS: Final = 30.0
"""How long a client may read nothing of its response."""
SWEEP_SECONDS: Final = 4.0
"""How often that is checked."""
READ_BUFFER: Final = 64 * 1024
"""Bytes of a body that are read ahead; twice as many at most."""
ALL_HEADS_BYTES: Final = 64 << 20
"""That the long heads of all connections may take together."""


def _is_no_fault_of_a_client(record: logging.LogRecord) -> bool:
    """Drops aiohttp's error logs of requests that are no HTTP: any client could fill the log with them."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, HttpProcessingError | web.RequestPayloadError):
        return True
    LOG.debug("a malformed HTTP request was refused: %s", error)
    return False


LOG.addFilter(_is_no_fault_of_a_client)


@contextmanager
def silent_losses() -> Iterator[None]:
    """Drop asyncio's warnings about writes to a closed TLS connection: one for each piece of a response."""

    def is_no_loss(record: logging.LogRecord) -> bool:
        return record.msg != "SSL connection is closed"

    logger = logging.getLogger("asyncio")
    logger.addFilter(is_no_loss)
    try:
        yield
    finally:
        logger.removeFilter(is_no_loss)


async def _never_called(_request: web.BaseRequest) -> web.StreamResponse:
    raise AssertionError("connections serve their requests themselves")


class Server(web.Server):
    """`clock` is that of sockets and clients; only tests step it."""

    def __init__(
        self, handle: Handle, *, clock: Clock | None = None, authorities: Authorities | None = None
    ) -> None:
        super().__init__(
            _never_called,
            logger=LOG,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
            max_headers=HEADERS,
            read_bufsize=READ_BUFFER,
            keepalive_timeout=IDLE_SECONDS,
            access_log=None,
            auto_decompress=False,  # as upstream: a body that was compressed is not read, so that none can be a bomb
        )
        self.clock = clock or RealClock()
        self.authorities = authorities
        """Of certificates, where there is more than that of clients."""
        self.head_bytes = 0
        """That long heads take which have no end yet."""
        self.unauthenticated = UnauthenticatedConnections()
        self._handle = handle
        self._answering = 0
        self._idle = asyncio.Event()
        self._draining = False
        self._open: dict[Connection, asyncio.Transport] = {}
        self._empty = asyncio.Event()
        self._stalled: dict[Connection, tuple[int, int, float]] = {}
        """Of connections that cannot be written to: drains and bytes left when that was last noticed, and since when."""
        self._sweeping: Timer | None = None

    def __call__(self) -> Connection:
        return Connection(self, loop=self._loop, **self._kwargs)

    def has_room_for_heads(self) -> bool:
        return self.head_bytes <= ALL_HEADS_BYTES

    async def pause(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        assert isinstance(handler, Connection)
        super().connection_made(handler, transport)
        self._open[handler] = transport
        handler.head_since = self.clock.monotonic()
        self.add_unauthenticated(handler)
        if self._sweeping is None:
            self._sweeping = self.clock.call_later(SWEEP_SECONDS, self._sweep)

    def add_unauthenticated(self, connection: Connection) -> None:
        """Count a connection among the unauthenticated ones that wait: no request of it is being served."""
        transport = connection.transport
        if transport is not None:
            self.unauthenticated.add(connection, connection.address, transport.close)

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
        """Close connections that keep the server waiting: for the end of a head, or until the client reads."""
        now = self.clock.monotonic()
        for connection, transport in [*self._open.items()]:
            since = connection.head_since
            if since is not None and now - since >= HEAD_SECONDS:
                transport.abort()
            elif connection.writing_paused:
                self._check_progress(connection, transport, now)
            else:
                self._stalled.pop(connection, None)
        self._sweeping = self.clock.call_later(SWEEP_SECONDS, self._sweep) if self._open else None

    def _check_progress(self, connection: Connection, transport: asyncio.Transport, now: float) -> None:
        pending_bytes = transport.get_write_buffer_size()
        drains, least, since = self._stalled.get(connection, (-1, 0, now))
        if drains != connection.drains or pending_bytes < least:
            self._stalled[connection] = (connection.drains, pending_bytes, now)
        elif now - since >= STALLED_SECONDS:
            LOG.debug("a client did not read for %.0f s and was disconnected", now - since)
            connection.is_cut = True
            transport.abort()

    async def drain(self, clock: Clock, seconds: float) -> None:
        """Close each connection with its next response; wait for all responses up to a limit."""
        self._draining = True
        if not self._answering:
            return
        timer = clock.call_later(seconds, self._idle.set)
        await self._idle.wait()
        timer.cancel()

    async def part(self, clock: Clock, seconds: float) -> None:
        """Wait until every connection is closed; those that their clients keep open for so long are cut.

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

    async def serve(self, client: SocketClient) -> Response:
        """Return the response to a request, which its connection writes."""
        self._answering += 1
        message = client.message
        expects = message.headers.get(hdrs.EXPECT)
        refusal = refusals.of_request(message)
        try:
            if refusal:
                return client.refuse(refusal)
            if expects and not is_continue(expects):
                client.keeps_open = False
                return expectation_failed()
            return await self._handle(client.request())
        finally:
            if expects and not client.payload.is_eof():
                client.keeps_open = False  # whether the body still comes is for the client to decide
            self._answering -= 1
            if self._draining:
                client.keeps_open = False
                if not self._answering:
                    self._idle.set()


MAX_CONNECTIONS: Final = 4000
"""More than the clients that start together on one machine, fewer than what fills its memory."""


class UnauthenticatedConnections:
    """Those of which no request has been authenticated and none is being served.

    Each costs a socket, a TLS session and what is sent of a head, and anybody who can reach the port can open one. When
    there are too many, the oldest one of the address that has most of them is closed.
    """

    def __init__(self, maximum: int = MAX_CONNECTIONS) -> None:
        self.maximum = maximum
        self._addresses: dict[str, dict[Hashable, Callable[[], object]]] = {}
        self._address_of: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._address_of)

    def add(self, connection: Hashable, address: str, close: Callable[[], object]) -> None:
        self.discard(connection)
        while len(self._address_of) >= self.maximum:
            self.evict()
        self._address_of[connection] = address
        self._addresses.setdefault(address, {})[connection] = close

    def discard(self, connection: Hashable) -> None:
        """Remove a connection that is lost, authenticated, or being served."""
        address = self._address_of.pop(connection, None)
        if address is not None:
            of_address = self._addresses[address]
            del of_address[connection]
            if not of_address:
                del self._addresses[address]

    def evict(self) -> None:
        """Close the oldest connection of the address that has most, if there is any."""
        if not self._addresses:
            return
        of_address = max(self._addresses.values(), key=len)
        connection, close = next(iter(of_address.items()))
        self.discard(connection)
        close()
