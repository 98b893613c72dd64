"""One connection: aiohttp's protocol, with limits of what a client can send before a request is served.

Requests are served in the task of the connection. aiohttp starts a task for each request, which costs two iterations of
the event loop before Python 3.12, as much as the parser does.

aiohttp limits each header separately, so that a request can have many long headers, and parses pipelined requests long
before they are served. Go's net/http limits the head as a whole and reads one request after the other, and so does this
module. The parser is aiohttp's: bytes are only counted, and passed to it in fewer and larger pieces.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import ERROR, PayloadAccessError, _ErrInfo

from mockube.apiserver.authn.authenticators import PeerCertificates
from mockube.apiserver.pki.server_context import ServerConnection
from mockube.component_base.tracebacks import drop_frames

from . import methods
from .adapter import SocketClient
from .response import BAD_REQUEST, TOO_LARGE, Refusal, refusal_of_head

if TYPE_CHECKING:
    from aiohttp.http import RawRequestMessage
    from aiohttp.streams import StreamReader

    from mockube.apiserver.request.response import Response

    from .server import Server

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

_parse: Final = web.RequestHandler.data_received
_END: Final = b"\r\n\r\n"
_NO_REQUEST: Final = b"\0"
"""Bytes that make the parser refuse a head."""


class Connection(web.RequestHandler):
    """A connection of `Server`, which counts the memory of long heads."""

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

    def __init__(self, server: "Server", **settings: Any) -> None:
        super().__init__(server, **settings)
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

    async def start(self) -> None:
        """Serve the client's requests one after another, until it or the server closes the connection."""
        try:
            while not self._force_close:
                if not self._messages:
                    await self._wait_for_request()
                if not await self._serve_next():
                    break
        except asyncio.CancelledError:
            self.force_close()
            raise
        except Exception as error:  # noqa: BLE001 - aiohttp's own errors; those of requests have responses
            self.log_exception("a connection is closed for an unexpected error", exc_info=error)
            self.force_close()
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()

    async def _wait_for_request(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _serve_next(self) -> bool:
        """Serve the first parsed request; return whether another may follow."""
        message, payload = self._messages.popleft()
        self._make_room()
        if not self.is_authenticated:
            self.server.unauthenticated.discard(self)
        self._request_in_progress = True
        try:
            keeps_open = await self._serve(message, payload)
        except ConnectionError:
            return False
        finally:
            self._request_in_progress = False
            if self._handler_waiter is not None:
                self._handler_waiter.set_result(None)
        if not self.is_authenticated:
            self.server.add_unauthenticated(self)
        self._keepalive = keeps_open
        if not payload.is_eof():
            await self._drain_body(payload)
        return keeps_open and self._stay_open()

    async def _serve(self, message: "RawRequestMessage | _ErrInfo", payload: "StreamReader") -> bool:
        if isinstance(message, _ErrInfo):
            client = SocketClient(self, ERROR, payload)
            response: Response = self.refuse(self._refusal or BAD_REQUEST)
        else:
            client = SocketClient(self, message, payload)
            response = await self.server.serve(client)
        await client.finish(response)
        if self.writing_paused:
            await self.drain()
        if isinstance(response, Refusal):
            await self.server.pause(LINGER_SECONDS)
            return False
        if self._upgraded and self._payload_parser is None:
            self._decline_upgrade()
        return client.keeps_open

    def send(self, data: bytes) -> None:
        """Write at once."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has read enough for more to be written."""
        await self._drain_helper()

    async def _drain_helper(self) -> None:
        """Wait without a name for the future: an error that it raises has the frame, which would refer to the future for ever."""
        if self.transport is None:
            raise ConnectionResetError("the client has disconnected")
        if self._paused:
            if self._drain_waiter is None:
                self._drain_waiter = self._loop.create_future()
            await self._drain_waiter

    def _decline_upgrade(self) -> None:
        """Continue with HTTP: parse the data that followed an upgrade request."""
        if self._parser is None:
            return
        self._parser.set_upgraded(val=False)
        self._upgraded = False
        tail, self._message_tail = self._message_tail, b""
        if tail:
            self.data_received(tail)

    def _make_room(self) -> None:
        """Parse the data behind the request that is being served now."""
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()
        if self._ahead and not self._messages:
            data, self._ahead = bytes(self._ahead), bytearray()
            if self.transport is not None and not self._reading_paused:
                self.transport.resume_reading()
            self.data_received(data)

    def _stay_open(self) -> bool:
        """Start the timeout until the next request; return False if the connection is being closed."""
        if self._close or self._force_close:
            return False
        self._next_keepalive_close_time = closes = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(closes, self._process_keepalive)
        return True

    async def _drain_body(self, payload: "StreamReader") -> None:
        """Read the rest of an unused body for a while, so that its sender reads the response."""
        over = self.server.clock.call_later(
            UNWANTED_BODY_SECONDS, lambda: payload.set_exception(PayloadAccessError())
        )
        try:
            while not (self._force_close or payload.is_eof()):
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
        elif not data or self._upgraded:
            self._feed(data)
        elif self._messages:
            self._hold(data)
        elif data.find(_END) >= 0 and not self._head and not self._fed:
            self._begin(data)
        else:
            self._collect(data)

    def take_unread_data(self) -> bytes:
        """Return the data that was read beyond the last request, for a tunnel."""
        buffered, self._message_tail, self._ahead = self._message_tail + bytes(self._ahead), b"", bytearray()
        return buffered

    def release_head(self) -> None:
        """Release the memory of a head."""
        self.server.head_bytes -= max(len(self._head) + self._fed - SMALL_HEAD, 0)
        self._head.clear()
        self._fed = self._head_lines = 0
        self.head_since = None

    def refuse(self, refusal: str) -> Refusal:
        """Return the response with this status line, and ignore all further data."""
        self._refusal = refusal
        return Refusal(refusal)

    def _begin(self, data: bytes) -> None:
        """Pass data to the parser. If a head begins with an unusual method, pass GET in its place."""
        if len(data) > _MIN_EXCESSIVE_BYTES:
            end = data.find(_END)
            if end > HEAD_BYTES or data.count(b"\n", 0, end) > HEADERS:
                self._refuse_head()
                return
        if not data.startswith(methods.STANDARD_METHODS) and self._is_between_requests():
            data, self._method = methods.replace_custom_method(data)
        self._feed(data)

    def _is_between_requests(self) -> bool:
        """Return whether the parser certainly has no part of a head. After a body only the parser knows."""
        is_whole = self._payload is None or self._payload.is_eof()
        return not self._last or (is_whole and self._last == _END[1:])

    def _feed(self, data: bytes) -> None:
        _parse(self, data)
        self._last = data[-3:] if len(data) > 2 else (self._last + data)[-3:]
        if self._messages:
            if self._method:
                self._restore_method()
            message, payload = self._messages[-1]
            self._payload = None if payload is EMPTY_PAYLOAD else payload
            self.head_since = None
            if isinstance(message, _ErrInfo) and not self._refusal:
                self._refusal = TOO_LARGE if isinstance(message.exc, LineTooLong) else refusal_of_head(data)

    def _restore_method(self) -> None:
        """Set the method of the parsed request. It is the first one, because no data are parsed while another waits."""
        message, payload = self._messages[0]
        if not isinstance(message, _ErrInfo):
            self._messages[0] = message._replace(method=self._method), payload
        self._method = ""

    def _feed_body(self, payload: "StreamReader", data: bytes) -> None:
        before = payload.total_bytes
        self._feed(data)
        excess = self._excess + len(data) - PER_BYTE * (payload.total_bytes - before)
        self._excess = excess = 0 if excess < 0 or payload.is_eof() or self._reading_paused else excess
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
        elif end >= 0:
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

    def _refuse_head(self) -> None:
        self.release_head()
        super().data_received(_NO_REQUEST)
        self._refusal = TOO_LARGE

    def _needs_line(self, data: bytes) -> bool:
        """Return whether the rest of the first line is needed, because the method may have to be replaced."""
        return not self._fed and b"\n" not in data and methods.may_be_custom_method(self._head)
