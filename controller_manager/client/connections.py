"""Connections to one server, with one request at a time on each, kept and used again.

Requests are small and many, and a client for all of HTTP costs several times as much for each.
"""

import asyncio
import ssl
from collections import deque
from functools import partial
from typing import Final, cast

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.client.http_response import MalformedResponse, Response, ResponseReader
from mockube.controller_manager.supervision import timeout

IDLE_SECONDS: Final = 30.0
"""How long a connection is kept unused: less than any server does, so that none is closed under a request."""
CONNECT_SECONDS: Final = 10.0


class NotConnected(Exception):
    """There is no connection: nothing was sent."""


class ConnectionBroken(Exception):
    """The request was sent, and the connection ended before the answer was whole."""


class Address(Struct, frozen=True, kw_only=True):
    host: str
    port: int
    trust: ssl.SSLContext | None
    """None for plain HTTP."""
    server_name: str
    """The name that the server's certificate must have."""


class Connections:
    """Belongs to the event loop in which it is used."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._idle: deque[_Connection] = deque()
        """The one that was used last is the last."""
        self._all: set[_Connection] = set()

    async def exchange(self, request: bytes, *, seconds: float, is_head: bool) -> Response:
        """Send a request and return its answer; raises `Unconnected`, `Broken` or TimeoutError."""
        connection = self._take() or await self._connect(seconds)
        try:
            response = await connection.exchange(request, seconds=seconds, is_head=is_head)
        except BaseException:
            connection.abort()  # its answer would be taken for that to the next request
            raise
        if response.is_reusable:
            self._idle.append(connection)
        else:
            connection.abort()
        return response

    def _take(self) -> "_Connection | None":
        oldest = self._clock.monotonic() - IDLE_SECONDS
        while self._idle and not self._idle[0].is_usable(oldest):
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable(oldest):
                return connection
            connection.abort()
        return None

    async def _connect(self, seconds: float) -> "_Connection":
        address, loop = self._address, asyncio.get_running_loop()
        try:
            async with timeout(self._clock, min(seconds, CONNECT_SECONDS)):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self._clock, loop.create_future(), self._all),
                    address.host,
                    address.port,
                    ssl=address.trust,
                    server_hostname=address.server_name if address.trust else None,
                )
        except OSError as error:  # as are errors of TLS, and TimeoutError
            raise NotConnected(str(error) or type(error).__name__) from error
        return connection

    async def close(self) -> None:
        self._idle.clear()
        ending = [*self._all]
        for connection in ending:
            connection.abort()
        for connection in ending:
            await connection.ended


class _Connection(asyncio.Protocol):
    def __init__(self, clock: Clock, ended: asyncio.Future[None], open_: "set[_Connection]") -> None:
        self.ended = ended
        """Done when it is closed."""
        self._clock = clock
        self._open = open_
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._answer: asyncio.Future[Response] | None = None
        """Of the request that is under way."""
        self._used_at = 0.0

    def is_usable(self, oldest: float) -> bool:
        """Whether it is open and was used after a time."""
        return self._transport is not None and self._used_at > oldest

    async def exchange(self, request: bytes, *, seconds: float, is_head: bool) -> Response:
        if self._transport is None:
            raise ConnectionBroken("the connection was closed")
        self._reader = ResponseReader(is_head=is_head)
        self._answer = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(seconds, partial(self._fail, TimeoutError()))
        self._transport.write(request)
        try:
            return await self._answer
        finally:
            timer.cancel()
            self._reader = self._answer = None
            self._used_at = self._clock.monotonic()

    def abort(self) -> None:
        """Close it without TLS' close_notify, whose answer would be waited for."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    # --- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._open.add(self)

    def data_received(self, data: bytes) -> None:
        if self._reader is None:
            self.abort()  # no request is waiting
            return
        try:
            response = self._reader.feed(data)
        except MalformedResponse as error:
            self._fail(ConnectionBroken(str(error)))
            return
        if response is not None:
            self._succeed(response)

    def eof_received(self) -> None:
        if self._reader is None:
            self.abort()
        elif (response := self._reader.end()) is not None:
            self._succeed(response)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._open.discard(self)
        self._fail(ConnectionBroken(str(error or "the server closed the connection")))
        self.ended.set_result(None)

    def _succeed(self, response: Response) -> None:
        self._reader = None  # data after the response belongs to no request
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(response)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
