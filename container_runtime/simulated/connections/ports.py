"""The server on a simulated pod's ports, for clients outside of the cluster: port-forward and proxies."""

import re
import ssl
from contextlib import suppress
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.http1 import heads
from mockube.component_base.http1.heads import IncompleteMessage, MessageTooLong, ProtocolError, RequestHead
from mockube.component_base.http1.reading import END, NEED_DATA, RequestReader
from mockube.component_base.http1.states import State
from mockube.component_base.http1.writing import encode_response
from mockube.component_base.tls_stream import ByteStream, TlsStream
from mockube.container_runtime.images.table import HTTP
from mockube.container_runtime.simulated.shell.limits import MAX_SENT
from mockube.container_runtime.streams import ClientConnection

from .connection_limits import SPEAKS_FIRST
from .port_answers import (
    CLIENT_PORT,
    HttpAnswer,
    OpenPort,
    ReceivedRequest,
    greeting_of,
    unknown_line,
)
from .port_responses import PortResponses

READ: Final = 16 * 1024
_TLS_HANDSHAKE: Final = b"\x16"
"""The first byte of a TLS connection."""
_BAD_REQUEST: Final = encode_response(
    400, [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")], b"400 Bad Request"
)
_REQUEST_LINE: Final = re.compile(rb"(?:\r?\n)*[A-Za-z]+ [^\n]* HTTP/\d")
_POSTGRES_TLS: Final = b"\0\0\0\x08\x04\xd2\x16\x2f"
"""The request of TLS with which a client of PostgreSQL begins."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


async def serve_port(
    pod: ReadOnlyTree,
    port: int,
    responses: PortResponses,
    client: ClientConnection,
    source: str = "127.0.0.1",
) -> None:
    """Respond to requests one after the other, until the client disconnects or sends what the server does not understand.

    `source` is the address of the client.
    """
    opened = responses.open_port(pod, port)
    if opened is None:
        return
    if opened.is_accepted:
        await responses.listeners.serve(meta.uid(pod), port, client)
    elif opened.speaks not in ("", HTTP):
        with responses.connections.hold(pod, opened) as refusal:
            if refusal:
                await _refuse(opened, client, refusal)
            else:
                await _serve_protocol(pod, opened, responses, client)
    else:
        await _serve_http(pod, port, opened, responses, client, source)


async def _serve_http(
    pod: ReadOnlyTree,
    port: int,
    opened: OpenPort,
    responses: PortResponses,
    client: ByteStream,
    source: str,
) -> None:
    reader = RequestReader()
    stream = await _accept_tls(pod, opened, responses, client)
    if stream is None:
        return
    line = f"{unknown_line(pod, opened)}\n".encode() if opened.unknown else b""
    while (head := await _read_head(stream, reader, line)) is not None:
        body = await _read_body(stream, reader)
        headers = {name.lower(): value for name, value in heads.pairs(head)}
        closes_connection = headers.get("connection", "").lower() == "close"
        request = ReceivedRequest(
            method=head.method, path=head.target, headers=headers, client=f"{source}:{CLIENT_PORT}", body=body
        )
        answer = await responses.respond(pod, port, opened, request)
        if not answer.status:
            return
        await stream.write(_encode(answer, head.method, closes_connection=closes_connection))
        if closes_connection or reader.state is not State.DONE:
            return
        reader.expect_next()


async def _serve_protocol(
    pod: ReadOnlyTree, opened: OpenPort, responses: PortResponses, stream: ByteStream
) -> None:
    """Reply to a client of another protocol than HTTP, until it disconnects or sends what has no reply."""
    if greeting := greeting_of(opened):
        await stream.write(greeting)
    while data := await stream.read(READ):
        await stream.write(reply := await responses.reply_to(pod, opened, data))
        if not reply:
            break


async def _refuse(opened: OpenPort, stream: ByteStream, refusal: bytes) -> None:
    """Tell a client that there are too many connections, after its first message where the protocol begins with one."""
    if opened.speaks not in SPEAKS_FIRST and await stream.read(READ) == _POSTGRES_TLS:
        await stream.write(b"N")
        await stream.read(READ)
    await stream.write(refusal)


class _ReadAhead:
    """A stream whose first bytes were read already."""

    def __init__(self, first: bytes, stream: ByteStream) -> None:
        self._first = first
        self._stream = stream

    async def read(self, limit: int) -> bytes:
        if self._first:
            data, self._first = self._first[:limit], self._first[limit:]
            return data
        return await self._stream.read(limit)

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)


async def _accept_tls(
    pod: ReadOnlyTree, opened: OpenPort, responses: PortResponses, stream: ByteStream
) -> ByteStream | None:
    """Return the stream inside of TLS, if the client begins with it and the server speaks it; None if the handshake fails."""
    if not opened.uses_tls:
        return stream
    first = await stream.read(READ)
    plain = _ReadAhead(first, stream)
    if first[:1] != _TLS_HANDSHAKE:
        return plain
    secure = TlsStream(plain, await responses.tls_context(pod, opened), is_server=True)
    try:
        await secure.handshake()
    except ssl.SSLError:
        return None
    return secure


async def _read_head(stream: ByteStream, reader: RequestReader, line: bytes = b"") -> RequestHead | None:
    """Return the next request; None if there is none, or one that the server does not understand.

    `line` is what a client gets that sends something else than HTTP to a server of which nobody knows what it speaks.
    """
    begin = b""
    try:
        while (event := reader.next_event()) is NEED_DATA:
            data = await stream.read(READ)
            if data[:1] == _TLS_HANDSHAKE:
                return None  # the server does not speak TLS
            begin += data[: READ - len(begin)]
            if b"\n" in begin and not _REQUEST_LINE.match(begin):
                await stream.write(line or _BAD_REQUEST)  # without waiting for the headers
                return None
            reader.receive(data)
    except (IncompleteMessage, MessageTooLong):
        if line and begin and not _REQUEST_LINE.match(begin):
            await stream.write(line)
        return None
    except ProtocolError:
        event = None
    if not isinstance(event, RequestHead) or event.method not in _METHODS:
        is_http = _REQUEST_LINE.match(begin) is not None
        await stream.write(_BAD_REQUEST if is_http or not line else line)
        return None
    return event


async def _read_body(stream: ByteStream, reader: RequestReader) -> bytes:
    """Read a body to its end; return what of it is within the limit."""
    body = bytearray()
    with suppress(ProtocolError):
        while (event := reader.next_event()) is not END:
            if event is NEED_DATA:
                reader.receive(await stream.read(READ))
            elif isinstance(event, bytes):
                body += event[: MAX_SENT - len(body)]
    return bytes(body)


def _encode(answer: HttpAnswer, method: str, *, closes_connection: bool) -> bytes:
    headers = {
        **({"Server": answer.server} if answer.server else {}),
        **({"Location": answer.location} if answer.location else {}),
        **dict(answer.headers),
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        **({"Connection": "close"} if closes_connection else {}),
    }
    return encode_response(answer.status, headers.items(), b"" if method == "HEAD" else answer.body)
