"""A pool of connections to one server, with one HTTP/1.1 request at a time on each, and the parser of the responses.

Requests are small and many: a general HTTP client costs several times as much for each.
"""

import asyncio
import re
import ssl
from collections import deque
from functools import partial
from typing import Final, NamedTuple, cast

from msgspec import Struct

from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout

IDLE_SECONDS: Final = 30.0
"""The time after which an idle connection is closed: before any server does, so that none is closed during a request."""
CONNECT_SECONDS: Final = 10.0

MAX_HEAD_BYTES: Final = 1 << 16
"""The maximum length of a status line and the headers."""
MAX_LINE_BYTES: Final = 1 << 12
"""The maximum length of a line between chunks."""

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n]*)?")
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?", re.DOTALL)
_WITHOUT_BODY: Final = frozenset({204, 304})
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

    async def exchange(self, request: bytes, *, seconds: float, is_head: bool) -> "RawResponse":
        """Send a request and return its response; raises `NotConnected`, `ConnectionBroken` or TimeoutError."""
        connection = self._take_idle() or await self._connect(seconds)
        try:
            response = await connection.exchange(request, seconds=seconds, is_head=is_head)
        except BaseException:
            connection.abort()  # else its response would count as that of the next request
            raise
        if response.is_reusable:
            self._idle.append(connection)
        else:
            connection.abort()
        return response

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

    async def _connect(self, seconds: float) -> "_Connection":
        address, loop = self._address, asyncio.get_running_loop()
        connection = _Connection(self._clock, loop.create_future(), self._all, self._max_body_bytes)
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
        return connection

    async def close(self) -> None:
        self._idle.clear()
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
        self._reader: ResponseReader | None = None
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

    def is_usable(self, oldest: float) -> bool:
        """Return whether the connection is open and was used after the time `oldest`."""
        return self._transport is not None and self._used_at > oldest

    async def exchange(self, request: bytes, *, seconds: float, is_head: bool) -> "RawResponse":
        if self._transport is None:
            raise ConnectionBroken("the connection was closed")
        self._reader = ResponseReader(is_head=is_head, max_body_bytes=self._max_body_bytes)
        self._response_future = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(seconds, partial(self._fail, TimeoutError()))
        self._transport.write(request)
        try:
            return await self._response_future
        finally:
            timer.cancel()
            self._reader = self._response_future = None
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

    def _succeed(self, response: "RawResponse") -> None:
        self._reader = None  # data after the response belongs to no request
        if self._response_future is not None and not self._response_future.done():
            self._response_future.set_result(response)

    def _fail(self, error: Exception) -> None:
        if self._response_future is not None and not self._response_future.done():
            self._response_future.set_exception(error)


# --- responses


class RawResponse(NamedTuple):
    """A complete HTTP response."""

    status: int
    headers: dict[bytes, bytes]
    """The headers by lower-case names; the last value of a repeated one."""
    body: bytes
    is_reusable: bool
    """Whether another request may be sent over the same connection."""


class MalformedResponse(Exception):
    """The bytes are not an HTTP/1.1 response."""


class ResponseReader:
    """A parser of one response."""

    def __init__(self, *, is_head: bool = False, max_body_bytes: int | None = None) -> None:
        """Create a parser. `is_head`: the request is a HEAD, whose response has no body."""
        self._is_head = is_head
        self._remaining = max_body_bytes
        """How many bytes may follow the head, with those between chunks; None is no limit."""
        self._partial_head = b""
        """The bytes of an incomplete head."""
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._is_reusable = False
        self._parts: list[bytes] = []
        self._missing: int | None = None
        """Bytes of the body that are still missing; None if the body ends with the connection."""
        self._chunks: _Chunks | None = None

    def feed(self, data: bytes) -> RawResponse | None:
        """Parse the next bytes; return the response if it is complete."""
        if not self._status:
            rest = self._parse_head(self._partial_head + data)
            if rest is None:
                return None
            data = rest
        if self._remaining is not None:
            self._remaining -= len(data)
            if self._remaining < 0:
                raise MalformedResponse("the response body is too long")
        if self._chunks is not None:
            is_complete = self._chunks.feed(data)
            return self._response(b"".join(self._chunks.parts), self._chunks.surplus) if is_complete else None
        self._parts.append(data)
        if self._missing is None:
            return None
        self._missing -= len(data)
        if self._missing > 0:
            return None
        body, surplus = b"".join(self._parts), -self._missing
        return self._response(body[: len(body) - surplus], surplus)

    def end(self) -> RawResponse | None:
        """Return the response of a connection that has ended; None unless the body ends with the connection."""
        is_complete = self._status and self._chunks is None and self._missing is None
        return self._response(b"".join(self._parts), surplus=0) if is_complete else None

    def _response(self, body: bytes, surplus: int) -> RawResponse:
        return RawResponse(self._status, self._headers, body, self._is_reusable and not surplus)

    def _parse_head(self, data: bytes) -> bytes | None:
        """Parse the head; return the bytes after it, or None if the head is not complete."""
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
        if status == _SWITCHING_PROTOCOLS:
            raise MalformedResponse("the response switches to another protocol")
        if status < 200:
            return self._parse_head(rest)
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
    """A parser of a chunked body."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.surplus = 0
        """The number of bytes after the end."""
        self._partial_line = b""
        """The bytes of an incomplete line."""
        self._missing = 0
        self._is_after_chunk = False
        self._is_after_last = False

    def feed(self, data: bytes) -> bool:
        """Parse the next bytes; return whether the body is complete."""
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
            if self._parse_line(line):
                self.surplus = len(data) - position
                return True
        return False

    def _parse_line(self, line: bytes) -> bool:
        """Parse a line between chunks; return whether the body ends with it."""
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
