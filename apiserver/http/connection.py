"""One connection: aiohttp's protocol, with limits of what a client can send before a request is served.

aiohttp limits each header separately, so that a request can have many long headers, and parses pipelined requests long
before they are served. Go's net/http limits the head as a whole and reads one request after the other, and so does this
module. The parser is aiohttp's: bytes are only counted, and passed to it in fewer and larger pieces.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from aiohttp import StreamReader, web
from aiohttp.http_exceptions import LineTooLong

from mockube.apiserver.authn.authenticators import PeerCertificates
from mockube.apiserver.pki.server_context import ServerConnection
from mockube.component_base.aiohttp_protocol import (
    EMPTY_PAYLOAD,
    MalformedRequest,
    Message,
    PayloadAccessError,
    SerialProtocol,
)
from mockube.component_base.clock import Clock
from mockube.component_base.tracebacks import drop_frames

from . import request_lines
from .response import BAD_REQUEST, TOO_LARGE, Refusal, refusal_of_head

HEAD_BYTES: Final = (1 << 20) + 4096
"""The limit of a request line and all headers together, as in Go: a mebibyte and some slack."""
SMALL_HEAD: Final = 16 * 1024
"""Bytes of a head that do not count against the server's memory limit."""
HEADERS: Final = 10_000
"""The limit of the number of headers. Go has none, but the parser takes 1.5 ms of the event loop for 1,000."""
_MIN_EXCESSIVE_BYTES: Final = len("a:\r\n") * HEADERS
"""Bytes of a head that may have more headers."""
PARSED_HEADERS: Final = HEAD_BYTES // len("a:\r\n")
"""The parser's own limit, which also counts trailers: more than there can be, so that it has no effect."""
NO_DATA: Final = 64 * 1024
"""The limit of bytes of chunk sizes, extensions and trailers without data."""
PER_BYTE: Final = 16
"""The number of such bytes that each byte of data allows: more than chunks of one byte need."""
UNWANTED_BODY_SECONDS: Final = 2.0
"""How long an unused body is read, so that its sender reads the response."""
UNSENT_BYTES: Final = 64 * 1024
"""Bytes that are written before the client has to read: the default without TLS, and an eighth of uvloop's default with it."""
LINGER_SECONDS: Final = 0.5
"""How long a refused client may continue to send, so that it reads the error and not a reset connection."""

_END: Final = b"\r\n\r\n"
_NO_REQUEST: Final = b"\0"
"""Bytes that make the parser refuse a head."""


class ConnectionServer(Protocol):
    """What a connection needs of its server."""

    clock: Clock
    head_bytes: int
    """Bytes of long heads that are not complete yet."""

    def has_room_for_heads(self) -> bool:
        """Return whether the long heads of all connections are within their limit."""

    def add_unauthenticated(self, connection: "Connection") -> None:
        """Count a connection as unauthenticated, while none of its requests is being served."""

    def discard_unauthenticated(self, connection: "Connection") -> None:
        """Count it no more."""

    async def serve(self, connection: "Connection", message: Message, payload: StreamReader) -> bool:
        """Write the response to a request; return whether the connection can serve another one."""


class Connection(SerialProtocol):
    """A connection of a server, which counts the memory of long heads."""

    __slots__ = (
        "_ahead",
        "_excess",
        "_fed",
        "_head",
        "_head_lines",
        "_last",
        "_method",
        "_payload",
        "_refusal",
        "address",
        "certificates",
        "drains",
        "head_since",
        "is_authenticated",
        "is_cut",
        "on_lost",
        "server",
    )

    def __init__(self, server: ConnectionServer, **settings: Any) -> None:
        super().__init__(cast("web.Server", server), **settings)
        self.server = server
        self.address = ""
        """The IP address of the client."""
        self.certificates: PeerCertificates | None = None
        """The certificates that the client has sent, which are not verified."""
        self.is_authenticated = False
        """Whether one of its requests has been authenticated as a user."""
        self.head_since: float | None = None
        """The time since which the client has to complete a head; None if it does not have to."""
        self.drains = 0
        """The number of times that writing was resumed after a pause."""
        self.is_cut = False
        """Whether the server aborted it because the client did not read."""
        self.on_lost: Callable[[], None] | None = None
        """Called when the connection is lost, which a waiting request, such as a watch, would not notice."""
        self._payload: StreamReader | None = None
        """The body of the request that was parsed last."""
        self._head = bytearray()
        """The part of an incomplete head that was not passed to the parser yet."""
        self._fed = 0
        """The number of bytes of that head that were passed to the parser."""
        self._head_lines = 0
        """The number of lines of that head that were received, unless it is received at once."""
        self._last = b""
        """The last bytes that were passed to the parser, because the end of a head may be split."""
        self._method = ""
        """The method that was sent, if the parser was given another one."""
        self._ahead = bytearray()
        """Pipelined data of later requests."""
        self._excess = 0
        """Bytes of the body's encoding, minus those that its data allow (PER_BYTE)."""
        self._refusal = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        name = transport.get_extra_info("peername")
        self.address = str(name[0]) if name else ""
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.set_write_buffer_limits(UNSENT_BYTES)
        tls = transport.get_extra_info("ssl_object")
        if isinstance(tls, ServerConnection) and tls.received_chain():
            self.certificates = PeerCertificates(tls.received_chain)

    def resume_writing(self) -> None:
        self.drains += 1
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        payload = self._payload
        if payload is not None and not payload.is_eof():
            payload.set_exception(exc or ConnectionResetError("the client has disconnected"))
        self._payload = None  # it refers to the connection

    async def serve_request(self, message: Message, payload: StreamReader) -> bool:
        self._make_room()
        if not self.is_authenticated:
            self.server.discard_unauthenticated(self)
        keeps_open = await self.server.serve(self, message, payload)
        if keeps_open and self.is_upgraded:
            self.decline_upgrade()
        self.count_as_unauthenticated()
        return keeps_open

    def count_as_unauthenticated(self) -> None:
        if not self.is_authenticated:
            self.server.add_unauthenticated(self)

    def send(self, data: bytes) -> None:
        """Write at once."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        transport.write(data)

    def _make_room(self) -> None:
        """Parse the data behind the request that is being served now."""
        self.note_taken_request()
        if self._ahead and not self.requests:
            data, self._ahead = bytes(self._ahead), bytearray()
            if self.transport is not None and not self.is_reading_paused:
                self.transport.resume_reading()
            self.data_received(data)

    async def drain_body(self, payload: "StreamReader") -> None:
        """Read the rest of an unused body for a while, so that its sender reads the response."""
        over = self.server.clock.call_later(
            UNWANTED_BODY_SECONDS, lambda: payload.set_exception(PayloadAccessError())
        )
        try:
            while not (self.is_closed or payload.is_eof()):
                await payload.readany()
        except (PayloadAccessError, ConnectionError) as error:
            drop_frames(error)
            self.close()
        finally:
            over.cancel()

    def data_received(self, data: bytes) -> None:
        if self._refusal:
            return
        payload = self._payload
        if payload is not None and not payload.is_eof():
            self._feed_body(payload, data)
        elif not data or self.is_upgraded:
            self._feed(data)
        elif self.requests:
            self._hold(data)
        elif data.find(_END) >= 0 and not self._head and not self._fed:
            self._begin(data)
        else:
            self._collect(data)

    def take_unread_data(self) -> bytes:
        """Return the data that was read beyond the last request, for a tunnel."""
        buffered, self._ahead = self.take_upgrade_tail() + bytes(self._ahead), bytearray()
        return buffered

    def release_head(self) -> None:
        """Release the memory of a head."""
        self.server.head_bytes -= max(len(self._head) + self._fed - SMALL_HEAD, 0)
        self._head.clear()
        self._fed = self._head_lines = 0
        self.head_since = None

    def refusal(self, refusal: str) -> Refusal:
        """Return the response with this status line, and ignore all further data."""
        self._refusal = refusal
        return Refusal(refusal)

    def refuse_malformed(self) -> Refusal:
        """Return the response to a request that the parser refused."""
        return self.refusal(self._refusal or BAD_REQUEST)

    def _begin(self, data: bytes) -> None:
        """Pass data that begin a head to the parser, and hold what certainly follows the request."""
        if len(data) > _MIN_EXCESSIVE_BYTES:
            end = data.find(_END)
            if end > HEAD_BYTES or data.count(b"\n", 0, end) > HEADERS:
                self._refuse_head()
                return
        line = request_lines.match(data) if self._is_between_requests() else None
        if line is not None:
            self._begin_request(data, line)
        elif self._is_between_requests() and data.replace(b"\r\n", b""):
            self._refuse_head(refusal_of_head(data))
        else:
            self._feed(data)

    def _begin_request(self, data: bytes, line: re.Match[bytes]) -> None:
        head_length = data.find(_END, line.end() - 2) + len(_END)
        length = len(data)
        if len(_END) <= head_length < length:
            length = request_lines.message_length(data, head_length)
        rest, data = data[length:], data[:length]
        if request_lines.is_custom(line):
            self._method = line[1].decode()
        self._feed(request_lines.for_parser(data, line))
        self._note_whole_body(length - head_length)
        if rest and not self._refusal:
            self._hold(rest)

    def _note_whole_body(self, received: int) -> None:
        """Note whether the parser is between requests, because all received bytes behind a head are its body."""
        payload = self._payload
        if payload is not None and payload.is_eof() and payload.total_bytes == received:
            self._last = b""

    def _is_between_requests(self) -> bool:
        """Return whether the parser certainly has no part of a head. After a body only the parser knows."""
        is_whole = self._payload is None or self._payload.is_eof()
        return not self._last or (is_whole and self._last == _END[1:])

    def _feed(self, data: bytes) -> None:
        self.parse(data)
        self._last = data[-3:] if len(data) > 2 else (self._last + data)[-3:]
        if self.requests:
            if self._method:
                self._restore_method()
            message, payload = self.requests[-1]
            self._payload = None if payload is EMPTY_PAYLOAD else payload
            self.head_since = None
            if isinstance(message, MalformedRequest) and not self._refusal:
                self._refusal = TOO_LARGE if isinstance(message.exc, LineTooLong) else refusal_of_head(data)

    def _restore_method(self) -> None:
        """Set the method of the parsed request. It is the first one, because no data are parsed while another waits."""
        message, payload = self.requests[0]
        if not isinstance(message, MalformedRequest):
            self.requests[0] = message._replace(method=self._method), payload
        self._method = ""

    def _feed_body(self, payload: "StreamReader", data: bytes) -> None:
        before = payload.total_bytes
        self._feed(data)
        if self._refusal and not payload.is_eof():
            payload.set_exception(web.RequestPayloadError("chunked encoding is malformed"))
        self._note_whole_body(before + len(data))
        excess = self._excess + len(data) - PER_BYTE * (payload.total_bytes - before)
        self._excess = excess = 0 if excess < 0 or payload.is_eof() or self.is_reading_paused else excess
        if excess > NO_DATA:
            self._refusal = BAD_REQUEST
            payload.set_exception(web.RequestPayloadError("chunked encoding contains too much non-data"))

    def _hold(self, data: bytes) -> None:
        """Hold data of later requests unparsed: only one request is parsed ahead."""
        self._ahead += data
        if self.transport is not None:
            self.transport.pause_reading()

    def _collect(self, data: bytes) -> None:
        """Pass a complete head to the parser; before its end, only pieces that double its size, which stays linear."""
        before = max(len(self._head) + self._fed - SMALL_HEAD, 0)
        boundary = (self._last + self._head[-3:])[-3:]
        self._head += data
        size = len(self._head) + self._fed
        self.server.head_bytes += max(size - SMALL_HEAD, 0) - before
        feed = self._feed if self._fed else self._begin
        text = boundary + data
        end = text.find(_END)
        self._head_lines += text.count(b"\n", len(boundary), end if end >= 0 else len(text))
        after_head = len(text) - end if end >= 0 else 0
        if self._head_lines > HEADERS or size - after_head > HEAD_BYTES:
            self._refuse_head()
        elif end >= 0 or b"\n\n" in text:
            head = bytes(self._head)
            self.release_head()
            feed(head)
        elif size > SMALL_HEAD and not self.server.has_room_for_heads():
            self._refuse_head()
        else:
            if self.head_since is None:
                self.head_since = self.server.clock.monotonic()
            if len(self._head) < self._fed or self._needs_line(data):
                return
            part, self._head = bytes(self._head), bytearray()
            self._fed += len(part)
            feed(part)

    def _refuse_head(self, refusal: str = TOO_LARGE) -> None:
        self.release_head()
        self.parse(_NO_REQUEST)
        self._refusal = refusal

    def _needs_line(self, data: bytes) -> bool:
        """Return whether the rest of the first line is needed, because it is checked as a whole."""
        if self._fed or not request_lines.may_become_line(self._head):
            return False
        return b"\n" not in data or b"\n" not in self._head.lstrip(b"\r\n")
