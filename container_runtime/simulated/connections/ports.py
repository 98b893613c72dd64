"""The server on a simulated pod's ports, for clients outside of the cluster: port-forward and proxies."""

import re
from contextlib import suppress
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.http1 import heads
from mockube.component_base.http1.heads import IncompleteMessage, MessageTooLong, ProtocolError, RequestHead
from mockube.component_base.http1.reading import END, NEED_DATA, RequestReader
from mockube.component_base.http1.states import State
from mockube.component_base.http1.writing import encode_response
from mockube.container_runtime.simulated.servers.http_paths import HTTP
from mockube.container_runtime.simulated.shell.limits import MAX_SENT
from mockube.container_runtime.streams import ClientConnection

from .port_answers import HttpAnswer, ReceivedRequest, greeting_of
from .port_responses import PortResponses
from .tls_streams import HANDSHAKE, TlsStream, UnreadStream

READ: Final = 16 * 1024
_BAD_REQUEST: Final = encode_response(
    400, [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")], b"400 Bad Request"
)
_REQUEST_LINE: Final = re.compile(rb"(?:\r?\n)*[A-Za-z]+ [^\n]* HTTP/\d")
_CLIENT: Final = "127.0.0.1:40000"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


async def serve_port(
    pod: ReadOnlyTree, port: int, responses: PortResponses, stream: ClientConnection
) -> None:
    """Respond to requests one after the other, until the client disconnects or sends what the server does not understand."""
    opened = responses.open_port(pod, port)
    if opened is not None and opened.speaks not in ("", HTTP):
        if greeting := greeting_of(opened):
            await stream.write(greeting)
        while data := await stream.read(READ):
            await stream.write(reply := await responses.reply_to(pod, opened, data))
            if not reply:
                break
        return
    if opened is not None and opened.behavior is not None and opened.behavior.tls:
        first = await stream.read(READ)
        stream = UnreadStream(stream, first)
        if first.startswith(HANDSHAKE):
            stream = TlsStream(stream, responses.tls_context)
    reader = RequestReader()
    while opened is not None and (head := await _read_head(stream, reader)) is not None:
        body = await _read_body(stream, reader)
        headers = {name.lower(): value for name, value in heads.pairs(head)}
        closes_connection = headers.get("connection", "").lower() == "close"
        request = ReceivedRequest(
            method=head.method, path=head.target, headers=headers, client=_CLIENT, body=body
        )
        answer = await responses.respond(pod, port, opened, request)
        if not answer.status:
            return
        await stream.write(_encode(answer, head.method, closes_connection=closes_connection))
        if closes_connection or reader.state is not State.DONE:
            return
        reader.expect_next()


async def _read_head(stream: ClientConnection, reader: RequestReader) -> RequestHead | None:
    """Return the next request; None if there is none, or one that the server does not understand."""
    begin = b""
    try:
        while (event := reader.next_event()) is NEED_DATA:
            data = await stream.read(READ)
            if data[:1] == HANDSHAKE:
                return None  # TLS is not supported.
            begin += data[: READ - len(begin)]
            if b"\n" in begin and not _REQUEST_LINE.match(begin):
                await stream.write(_BAD_REQUEST)  # without waiting for the headers
                return None
            reader.receive(data)
    except (IncompleteMessage, MessageTooLong):
        return None
    except ProtocolError:
        event = None
    if not isinstance(event, RequestHead) or event.method not in _METHODS:
        await stream.write(_BAD_REQUEST)
        return None
    return event


async def _read_body(stream: ClientConnection, reader: RequestReader) -> bytes:
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
