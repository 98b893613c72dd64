"""The client of a request that came over a socket: aiohttp's messages become requests, and responses become bytes.

aiohttp's response objects are used only for streams; complete responses are written by `response`. The header Expect is
handled as Go does: status 100 when the body is read, otherwise 417.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from aiohttp import StreamReader, hdrs, web
from aiohttp.http import HttpVersion11, RawRequestMessage, StreamWriter
from multidict import CIMultiDict, CIMultiDictProxy

from mockube.apimachinery import status, uri
from mockube.apiserver.authn.authenticators import PeerCertificates
from mockube.apiserver.request.request import Frame, Request
from mockube.apiserver.request.response import PIECE, Response
from mockube.component_base.aiohttp_protocol import HeadWriter
from mockube.component_base.http1 import requests
from mockube.component_base.tracebacks import drop_frames

from .backend_connection import LIMIT
from .connection import Connection
from .response import Refusal, render, write_pieces
from .streams import Chunks, Messages


class Tunnel:
    """The bytes from and to a client whose connection has left HTTP after an upgrade."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer


class _TunnelProtocol(asyncio.StreamReaderProtocol):
    """Replaces the protocol of a connection, and notifies that protocol of the connection's end."""

    def __init__(
        self, connection: Connection, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(reader, loop=loop)
        self._connection = connection

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None)  # with an error, the reader would lose what it has not read
        self._connection.connection_lost(exc)


class SocketClient:
    """The `Client` of one request: its body, and the way its response is written."""

    __slots__ = (
        "_connection",
        "_http",
        "_is_written",
        "_sink",
        "head",
        "keeps_open",
        "message",
        "payload",
    )

    def __init__(self, connection: Connection, message: RawRequestMessage, payload: StreamReader) -> None:
        self.message = message
        self.payload = payload
        self.head = ""
        # After a request for a protocol that it does not know, aiohttp's parser drops what follows.
        self.keeps_open = not (message.should_close or (message.upgrade and not connection.is_upgraded))
        """Whether the connection can serve another request after this one."""
        self._connection = connection
        self._http: web.BaseRequest | None = None
        self._sink: Chunks | Messages | None = None
        self._is_written = False

    def request(self) -> Request:
        message, headers = self.message, self.message.headers
        url = message.url
        if url.absolute:  # its host is that of the request
            url = url.relative()
            edited = CIMultiDict(headers)
            edited[hdrs.HOST] = requests.split_url(message.path)[0]
            headers = CIMultiDictProxy(edited)
        return Request(
            message.method,
            uri.unescape(url.raw_path),
            url.raw_query_string,
            headers,
            self,
            version=message.version,
        )

    @property
    def uri(self) -> str:
        path, url = self.message.path, self.message.url
        return path if path.startswith("/") else str(url.relative() if url.absolute else url)

    @property
    def address(self) -> str:
        return self._connection.address

    @property
    def port(self) -> int:
        name = self._extra_info("peername")
        return int(name[1]) if isinstance(name, tuple) and len(name) > 1 else 0

    @property
    def is_secure(self) -> bool:
        return self._extra_info("ssl_object") is not None

    def _extra_info(self, name: str) -> Any:
        transport = self._connection.transport
        return None if transport is None else transport.get_extra_info(name)

    @property
    def certificates(self) -> PeerCertificates | None:
        return self._connection.certificates

    @property
    def has_body(self) -> bool:
        return not self.payload.at_eof()

    @property
    def is_cut(self) -> bool:
        return self._connection.is_cut

    def set_authenticated(self) -> None:
        self._connection.is_authenticated = True

    def set_unauthenticated(self) -> None:
        self._connection.count_as_unauthenticated()

    def on_lost(self, callback: Callable[[], None] | None) -> None:
        self._connection.on_lost = callback

    def abort(self) -> None:
        transport = self._connection.transport
        if transport is not None:
            transport.abort()

    def refuse(self, refusal: str) -> Refusal:
        return self._connection.refusal(refusal)

    async def read(self, limit: int) -> bytes:
        return await read(self.message, self.payload, self._connection.send, limit)

    async def content(self) -> AsyncIterator[bytes]:
        """Yield the body as it is received, whatever its length."""
        if waits_for_continue(self.message, self.payload):
            self._connection.send(CONTINUE)
        try:
            async for data in self.payload.iter_any():
                yield data
        except web.RequestPayloadError as error:
            raise _incomplete_body(error) from error

    def take_over(self) -> Tunnel:
        """Return the bytes of the connection as a tunnel. The connection is closed after the request."""
        self._is_written, self.keeps_open = True, False
        return take_over(self._connection, self._connection.take_unread_data())

    async def write(self, response: Response) -> None:
        self._is_written = True
        message, connection = self.message, self._connection
        is_compressed = response.compressed and message.version >= HttpVersion11
        if message.method == hdrs.METH_HEAD or not (is_compressed or response.size > PIECE):
            connection.send(render(response, message, self.head, keeps_open=self.keeps_open))
            return
        writer = StreamWriter(connection, asyncio.get_running_loop())
        await write_pieces(writer, response, message, self.head, keeps_open=self.keeps_open)

    def stream(self, response: Response) -> Chunks:
        self._sink = sink = Chunks(self._connection, self._request(), response, self._headers())
        return sink

    def messages(self, protocols: Sequence[str], frame: Frame, on_closed: Callable[[], None]) -> Messages:
        self._sink = sink = Messages(self._request(), protocols, frame, on_closed)
        sink.response.headers.update(self._headers())
        return sink

    async def finish(self, response: Response) -> None:
        """Write a response, unless it was written already."""
        sink = self._sink
        if sink is not None and sink.response.prepared:
            if not sink.has_ended:
                self.abort()  # an incomplete stream must not look complete
            self.keeps_open = self.keeps_open and bool(sink.response.keep_alive)
        elif not self._is_written:
            await self.write(response)

    def _headers(self) -> dict[str, str]:
        """Return the lines of `head` as headers."""
        return dict(line.split(": ", 1) for line in self.head.split("\r\n")[:-1])

    def _request(self) -> web.BaseRequest:
        """Return the request of aiohttp that its streams need."""
        if self._http is None:
            connection, loop, task = self._connection, asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            writer = HeadWriter(connection, loop)
            self._http = web.BaseRequest(self.message, self.payload, connection, writer, task, loop)
        return self._http


def take_over(connection: Connection, buffered: bytes) -> Tunnel:
    """Replace the HTTP protocol of a connection by a tunnel; `buffered` is what was read beyond the request."""
    loop, transport = asyncio.get_running_loop(), connection.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has disconnected")
    reader = asyncio.StreamReader(limit=LIMIT, loop=loop)
    protocol: Any = _TunnelProtocol(connection, reader, loop)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if buffered:
        reader.feed_data(buffered)
    transport.resume_reading()
    return Tunnel(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


async def read(
    message: RawRequestMessage, payload: StreamReader, send: Callable[[bytes], None], limit: int
) -> bytes:
    """Return the body of a message, or raise an ApiError if it is longer than `limit`; `send` writes to the client."""
    if payload.is_eof():
        return _take_received(payload, limit)
    if int(message.headers.get(hdrs.CONTENT_LENGTH, 0)) > limit:
        raise _too_large(limit)
    data = bytearray()
    try:
        if waits_for_continue(message, payload):
            send(CONTINUE)
        async for chunk in payload.iter_any():
            data += chunk
            if len(data) > limit:
                raise _too_large(limit)
    except (web.RequestPayloadError, ConnectionError) as error:
        raise _incomplete_body(error) from error
    return bytes(data)


def _take_received(payload: StreamReader, limit: int) -> bytes:
    """Return a body that was received completely with the head, as small ones are."""
    try:
        data = payload.read_nowait()
    except (web.RequestPayloadError, ConnectionError) as error:
        raise _incomplete_body(error) from error
    if len(data) > limit:
        raise _too_large(limit)
    return data


def _too_large(limit: int) -> status.ApiError:
    return status.request_entity_too_large(f"limit is {limit}")


def _incomplete_body(error: Exception) -> status.BadRequest:
    drop_frames(error)
    return status.BadRequest(f"the body ends too early: {error}")


CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


def is_continue(expected: str) -> bool:
    return any(token.strip().lower() == "100-continue" for token in expected.split(","))


def waits_for_continue(message: RawRequestMessage, payload: StreamReader) -> bool:
    """Return whether a client waits for status 100 before it sends its body."""
    expected = message.headers.get(hdrs.EXPECT)
    if not expected or message.version < HttpVersion11 or not is_continue(expected):
        return False
    return not payload.total_bytes


def expectation_failed() -> Response:
    return Response(417, (), "text/plain; charset=utf-8")
