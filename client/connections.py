"""A pool of connections to one server, with one HTTP/1.1 request at a time on each.

Requests are small and many: a general HTTP client costs several times as much for each.
"""

import asyncio
import ssl
from collections import deque
from functools import partial
from typing import Final, NamedTuple, cast

from msgspec import Struct

from mockube.component_base.clock import Clock, Timer
from mockube.component_base.http1.heads import IncompleteMessage, ProtocolError, ResponseHead
from mockube.component_base.http1.reading import END, NEED_DATA, ResponseReader
from mockube.component_base.supervision import timeout

IDLE_SECONDS: Final = 30.0
"""The time after which an idle connection is closed: before any server does, so that none is closed during a request."""
CONNECT_SECONDS: Final = 10.0
OPENED_AT_ONCE: Final = 4
"""The connections that a burst of requests opens. Beyond them, requests wait for one that becomes idle: a handshake costs more than a request."""
PACE_SECONDS: Final = 0.05
"""While requests wait, one more connection is opened in each such time: those in use may have slow responses."""

_SWITCHING_PROTOCOLS: Final = 101


class NotConnected(Exception):
    """The connection was not established, so the request was not sent."""


class ConnectionBroken(Exception):
    """The request was sent, and the connection ended before the response was complete."""


class Address(Struct, frozen=True, kw_only=True):
    host: str
    port: int
    trust: ssl.SSLContext | None
    """None for plain HTTP."""
    server_name: str
    """The name that the server's certificate must have."""


class Connections:
    """The connections to one server. It belongs to the event loop in which it is used."""

    def __init__(self, address: Address, clock: Clock, max_body_bytes: int | None = None) -> None:
        """`max_body_bytes` is the maximum length of a response's body; None is no limit."""
        self._address = address
        self._clock = clock
        self._max_body_bytes = max_body_bytes
        self._idle: deque[_Connection] = deque()
        """The idle connections; the most recently used is the last."""
        self._all: set[_Connection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[_Connection | None]] = deque()
        """The requests that wait for an idle connection, in their order; None tells one to open another."""
        self._pace: Timer | None = None

    async def exchange(self, request: bytes, *, seconds: float, is_head: bool) -> "RawResponse":
        """Send a request and return its response; raises `NotConnected`, `ConnectionBroken` or TimeoutError."""
        connection = self._take_idle() or await self._wait_for_idle() or await self._connect(seconds)
        try:
            response = await connection.exchange(request, seconds=seconds, is_head=is_head)
        except BaseException:
            connection.abort()  # else its response would count as that of the next request
            raise
        if response.is_reusable:
            self._release(connection)
        else:
            connection.abort()
        return response

    def _release(self, connection: "_Connection") -> None:
        if not self._hand_to_waiting(connection):
            self._idle.append(connection)

    def _take_idle(self) -> "_Connection | None":
        oldest = self._clock.monotonic() - IDLE_SECONDS
        while self._idle and not self._idle[0].is_usable(oldest):
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable(oldest):
                return connection
            connection.abort()
        return None

    async def _wait_for_idle(self) -> "_Connection | None":
        """Return the next connection that becomes idle; None if another one is to be opened."""
        if len(self._all) + self._opening < OPENED_AT_ONCE:
            return None
        waiting: asyncio.Future[_Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._keep_pace()
        try:
            connection = await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and (unused := waiting.result()) is not None:
                self._release(unused)
            raise
        return connection if connection is not None and connection.is_open else None

    def _hand_to_waiting(self, connection: "_Connection | None") -> bool:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(connection)
                return True
        return False

    def _keep_pace(self) -> None:
        if self._pace is None:
            self._pace = self._clock.call_later(PACE_SECONDS, self._let_open)

    def _let_open(self) -> None:
        self._pace = None
        if self._hand_to_waiting(None) and self._waiting:
            self._keep_pace()

    async def _connect(self, seconds: float) -> "_Connection":
        address, loop = self._address, asyncio.get_running_loop()
        connection = _Connection(self._clock, loop.create_future(), self._all, self._max_body_bytes)
        self._opening += 1
        try:
            async with timeout(self._clock, min(seconds, CONNECT_SECONDS)):
                await loop.create_connection(
                    lambda: connection,
                    address.host,
                    address.port,
                    ssl=address.trust,
                    server_hostname=address.server_name if address.trust else None,
                )
        except OSError as error:  # includes errors of TLS, and TimeoutError
            connection.abandon()
            raise NotConnected(str(error) or type(error).__name__) from error
        except BaseException:
            connection.abandon()
            raise
        finally:
            self._opening -= 1
        return connection

    async def close(self) -> None:
        self._idle.clear()
        if self._pace is not None:
            self._pace.cancel()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(NotConnected("the connections are closed"))
        self._waiting.clear()
        ending = [*self._all]  # each removes itself when it has ended
        for connection in ending:
            connection.abort()
        if ending:
            await asyncio.wait([connection.ended for connection in ending])


class _Connection(asyncio.Protocol):
    def __init__(
        self,
        clock: Clock,
        ended: asyncio.Future[None],
        open_: "set[_Connection]",
        max_body_bytes: int | None,
    ) -> None:
        self.ended = ended
        """Done when the connection is closed."""
        self._clock = clock
        self._open = open_
        self._max_body_bytes = max_body_bytes
        self._transport: asyncio.Transport | None = None
        self._response_buffer: _ResponseBuffer | None = None
        self._response_future: asyncio.Future[RawResponse] | None = None
        """The response to the current request."""
        self._used_at = 0.0
        self._is_abandoned = False

    def abandon(self) -> None:
        """Close a connection whose caller does not wait any more.

        If that happens at the end of a TLS handshake, uvloop calls `connection_made`, before or after, but it never calls
        `connection_lost`.
        """
        self._is_abandoned = True
        self._open.discard(self)
        self.abort()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def is_usable(self, oldest: float) -> bool:
        """Return whether the connection is open and was used after the time `oldest`."""
        return self.is_open and self._used_at > oldest

    async def exchange(self, request: bytes, *, seconds: float, is_head: bool) -> "RawResponse":
        if self._transport is None:
            raise ConnectionBroken("the connection was closed")
        self._response_buffer = _ResponseBuffer(is_head=is_head, max_body_bytes=self._max_body_bytes)
        self._response_future = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(seconds, partial(self._fail, TimeoutError()))
        self._transport.write(request)
        try:
            return await self._response_future
        finally:
            timer.cancel()
            self._response_buffer = self._response_future = None
            self._used_at = self._clock.monotonic()

    def abort(self) -> None:
        """Close the connection without TLS' close_notify, because that waits for the server's."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._is_abandoned:
            self.abort()
        else:
            self._open.add(self)

    def data_received(self, data: bytes) -> None:
        if self._response_buffer is None:
            self.abort()  # no request is waiting
            return
        try:
            response = self._response_buffer.receive(data)
        except IncompleteMessage:
            return  # `connection_lost` says why the connection ended
        except ProtocolError as error:
            self._fail(ConnectionBroken(str(error)))
            return
        if response is not None:
            self._succeed(response)

    def eof_received(self) -> None:
        self.data_received(b"")

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._open.discard(self)
        self._fail(ConnectionBroken(str(error or "the server closed the connection")))
        self.ended.set_result(None)

    def _succeed(self, response: "RawResponse") -> None:
        self._response_buffer = None  # data after the response belongs to no request
        if self._response_future is not None and not self._response_future.done():
            self._response_future.set_result(response)

    def _fail(self, error: Exception) -> None:
        if self._response_future is not None and not self._response_future.done():
            self._response_future.set_exception(error)


class RawResponse(NamedTuple):
    """A complete HTTP response."""

    status: int
    headers: dict[bytes, bytes]
    """The headers by lower-case names; the first value of a repeated one."""
    body: bytes
    is_reusable: bool
    """Whether another request may be sent over the same connection."""


class _ResponseBuffer:
    """Collects one response."""

    def __init__(self, *, is_head: bool, max_body_bytes: int | None) -> None:
        self._reader = ResponseReader("HEAD" if is_head else "GET")
        self._max_body_bytes = max_body_bytes
        self._head: ResponseHead | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def receive(self, data: bytes) -> RawResponse | None:
        """Add bytes, or the end of the connection; return the response if it is complete."""
        reader = self._reader
        reader.receive(data)
        while True:
            event = reader.next_event()
            if event is END:
                return self._response()
            if event is NEED_DATA:
                return None
            if type(event) is bytes:
                self._parts.append(event)
                self._size += len(event)
                if self._max_body_bytes is not None and self._size > self._max_body_bytes:
                    raise ProtocolError("the response body is too long")
            elif type(event) is ResponseHead:
                if event.status == _SWITCHING_PROTOCOLS:
                    raise ProtocolError("the response switches to another protocol")
                self._head = event

    def _response(self) -> RawResponse:
        assert self._head is not None
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return RawResponse(self._head.status, self._head.fields, body, self._reader.is_reusable)
