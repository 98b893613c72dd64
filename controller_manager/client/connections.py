"""Connections to one server, with one HTTP/1.1 request at a time on each, and the parser of the responses.

Connections are reused. Requests are small and many, and a client for all of HTTP costs several times as much for each.
"""

import asyncio
import re
import ssl
from collections import deque
from functools import partial
from typing import Final, NamedTuple, cast

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.supervision import timeout

IDLE_SECONDS: Final = 30.0
"""How long an idle connection is kept open: less than any server does, so that none is closed during a request."""
CONNECT_SECONDS: Final = 10.0

MAX_HEAD_BYTES: Final = 1 << 16
"""Bytes of a status line and the headers."""
MAX_LINE_BYTES: Final = 1 << 12
"""Bytes of a line between chunks."""

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n]*)?")
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?", re.DOTALL)
_WITHOUT_BODY: Final = frozenset({204, 304})
_SWITCHING: Final = 101


class NotConnected(Exception):
    """There is no connection: nothing was sent."""


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
    """Belongs to the event loop in which it is used."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._idle: deque[_Connection] = deque()
        """The one that was used most recently is the last."""
        self._all: set[_Connection] = set()

    async def exchange(self, request: bytes, *, seconds: float, is_head: bool) -> "Response":
        """Send a request and return its response; raises `NotConnected`, `ConnectionBroken` or TimeoutError."""
        connection = self._take() or await self._connect(seconds)
        try:
            response = await connection.exchange(request, seconds=seconds, is_head=is_head)
        except BaseException:
            connection.abort()  # its response would be taken for that of the next request
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
        connection = _Connection(self._clock, loop.create_future(), self._all)
        try:
            async with timeout(self._clock, min(seconds, CONNECT_SECONDS)):
                await loop.create_connection(
                    lambda: connection,
                    address.host,
                    address.port,
                    ssl=address.trust,
                    server_hostname=address.server_name if address.trust else None,
                )
        except OSError as error:  # as are errors of TLS, and TimeoutError
            connection.abandon()
            raise NotConnected(str(error) or type(error).__name__) from error
        except BaseException:
            connection.abandon()
            raise
        return connection

    async def close(self) -> None:
        self._idle.clear()
        ending = [*self._all]
        for connection in ending:
            connection.abort()
        if ending:
            await asyncio.wait([connection.ended for connection in ending])


class _Connection(asyncio.Protocol):
    def __init__(self, clock: Clock, ended: asyncio.Future[None], open_: "set[_Connection]") -> None:
        self.ended = ended
        """Done when it is closed."""
        self._clock = clock
        self._open = open_
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._answer: asyncio.Future[Response] | None = None
        """The response to the current request."""
        self._used_at = 0.0
        self._is_abandoned = False

    def abandon(self) -> None:
        """End a connection that nobody waits for any more.

        If that happens at the end of a TLS handshake, uvloop calls `connection_made`, before or after, but it never calls
        `connection_lost`.
        """
        self._is_abandoned = True
        self._open.discard(self)
        self.abort()

    def is_usable(self, oldest: float) -> bool:
        """Whether it is open and was used after a time."""
        return self._transport is not None and self._used_at > oldest

    async def exchange(self, request: bytes, *, seconds: float, is_head: bool) -> "Response":
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
        """Close it without TLS' close_notify, which would wait for the server's."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    # --- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._is_abandoned:
            self.abort()
        else:
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

    def _succeed(self, response: "Response") -> None:
        self._reader = None  # data after the response belongs to no request
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(response)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


# --- responses


class Response(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    """The headers by lower-case names; the last value of a repeated one."""
    body: bytes
    is_reusable: bool
    """Whether another request may be sent over the same connection."""


class MalformedResponse(Exception):
    """The bytes are not an HTTP/1.1 response."""


class ResponseReader:
    """Reads one response."""

    def __init__(self, *, is_head: bool = False) -> None:
        """`is_head`: whether this is the response to a HEAD, which has no body."""
        self._is_head = is_head
        self._partial_head = b""
        """The bytes of an incomplete head."""
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._is_reusable = False
        self._parts: list[bytes] = []
        self._missing: int | None = None
        """Bytes of the body that are still missing; None if the body ends with the connection."""
        self._chunks: _Chunks | None = None

    def feed(self, data: bytes) -> Response | None:
        """Take the next bytes; return the response once it is complete."""
        if not self._status:
            rest = self._take_head(self._partial_head + data)
            if rest is None:
                return None
            data = rest
        if self._chunks is not None:
            is_whole = self._chunks.feed(data)
            return self._response(b"".join(self._chunks.parts), self._chunks.surplus) if is_whole else None
        self._parts.append(data)
        if self._missing is None:
            return None
        self._missing -= len(data)
        if self._missing > 0:
            return None
        body, surplus = b"".join(self._parts), -self._missing
        return self._response(body[: len(body) - surplus], surplus)

    def end(self) -> Response | None:
        """The connection has ended: return the response if its body ends with the connection."""
        is_whole = self._status and self._chunks is None and self._missing is None
        return self._response(b"".join(self._parts), surplus=0) if is_whole else None

    def _response(self, body: bytes, surplus: int) -> Response:
        return Response(self._status, self._headers, body, self._is_reusable and not surplus)

    def _take_head(self, data: bytes) -> bytes | None:
        """Return what follows the head, or None if the head is not complete."""
        head, end, rest = data.partition(b"\r\n\r\n")
        if len(head) > MAX_HEAD_BYTES:
            raise MalformedResponse("the response header is too long")
        if not end:
            self._partial_head = data
            return None
        first, *lines = head.split(b"\r\n")
        matched = _STATUS_LINE.fullmatch(first)
        if matched is None:
            raise MalformedResponse(f"the response begins with {first[:100]!r}")
        status, headers = int(matched[2]), dict(map(_header, lines))
        if status == _SWITCHING:
            raise MalformedResponse("the response switches to another protocol")
        if status < 200:
            return self._take_head(rest)
        self._status, self._headers = status, headers
        self._expect_body(headers)
        self._is_reusable = (
            matched[1] == b"1"
            and headers.get(b"connection", b"").lower() != b"close"
            and (self._missing is not None or self._chunks is not None)
        )
        return rest

    def _expect_body(self, headers: dict[bytes, bytes]) -> None:
        encoding, length = headers.get(b"transfer-encoding"), headers.get(b"content-length")
        if self._is_head or self._status in _WITHOUT_BODY:
            self._missing = 0
        elif encoding is not None:
            if encoding.lower() != b"chunked":
                raise MalformedResponse(f"the response is encoded as {encoding[:100]!r}")
            self._chunks = _Chunks()
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise MalformedResponse(f"the response has a length of {length[:100]!r}")
            self._missing = int(length)


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon:
        raise MalformedResponse(f"invalid response header {line[:100]!r}")
    return name.lower(), value.strip(b" \t")


class _Chunks:
    """A body in chunks."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.surplus = 0
        """Return the number of bytes after the end."""
        self._partial_line = b""
        """The bytes of an incomplete line."""
        self._missing = 0
        self._is_after_chunk = False
        self._is_after_last = False

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; returns whether the body is complete."""
        data, position = self._partial_line + data, 0
        self._partial_line = b""
        while position < len(data):
            if self._missing:
                part = data[position : position + self._missing]
                self.parts.append(part)
                self._missing -= len(part)
                position += len(part)
                continue
            end = data.find(b"\r\n", position)
            if (len(data) if end < 0 else end) - position > MAX_LINE_BYTES:
                raise MalformedResponse("a line between chunks of the response is too long")
            if end < 0:
                self._partial_line = data[position:]
                return False
            line, position = data[position:end], end + 2
            if self._is_end(line):
                self.surplus = len(data) - position
                return True
        return False

    def _is_end(self, line: bytes) -> bool:
        """Take a line that is no part of a chunk."""
        if self._is_after_last:
            return not line
        if self._is_after_chunk:
            if line:
                raise MalformedResponse(f"a chunk of the response is longer than its size: {line[:100]!r}")
            self._is_after_chunk = False
            return False
        matched = _CHUNK_SIZE.fullmatch(line)
        if matched is None:
            raise MalformedResponse(f"a chunk of the response has a size of {line[:100]!r}")
        self._missing = int(matched[1], 16)
        self._is_after_chunk = bool(self._missing)
        self._is_after_last = not self._missing
        return False
