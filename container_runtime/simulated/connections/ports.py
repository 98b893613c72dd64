"""The server on a simulated pod's ports, for clients outside of the cluster: port-forward and proxies."""

from http import HTTPStatus
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime import limits
from mockube.container_runtime.streams import ClientConnection

from .port_answers import HTTP, HttpAnswer, ReceivedRequest, open_port, reply_to
from .port_responses import PortResponses

READ: Final = 16 * 1024
_TLS_HANDSHAKE: Final = 0x16
"""The first byte of a TLS connection."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def is_open(pod: ReadOnlyTree, port: int) -> bool:
    """Return whether a running container listens on the port."""
    return open_port(pod, port) is not None


async def serve_port(
    pod: ReadOnlyTree, port: int, responses: PortResponses, stream: ClientConnection
) -> None:
    """Respond to requests one after the other, until the client disconnects or sends what the server does not understand."""
    opened = open_port(pod, port)
    if opened is not None and opened.speaks not in ("", HTTP):
        await stream.write(reply_to(opened.behavior, await stream.read(READ)))
        return
    buffer = bytearray()
    while opened is not None and (header := await _read_header(stream, buffer)) is not None:
        method, path, headers = header
        await _skip_body(stream, buffer, headers)
        closes_connection = headers.get("connection", "").lower() == "close"
        request = ReceivedRequest(method=method, path=path, headers=headers)
        answer = await responses.respond(pod, port, opened, request)
        await stream.write(_encode(answer, method, closes_connection=closes_connection))
        if closes_connection:
            return


async def _read_header(stream: ClientConnection, buffer: bytearray) -> tuple[str, str, dict[str, str]] | None:
    while b"\r\n\r\n" not in buffer:
        data = await stream.read(READ)
        if not data or len(buffer) > limits.MAX_REQUEST_HEAD:
            return None
        buffer += data
        if buffer[0] == _TLS_HANDSHAKE:
            return None  # TLS is not supported.
    end = buffer.index(b"\r\n\r\n")
    first, *lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    del buffer[: end + 4]
    method, _, rest = first.partition(" ")
    path, _, version = rest.partition(" ")
    if method not in _METHODS or not version.startswith("HTTP/1."):
        await stream.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        return None
    pairs = (line.partition(":") for line in lines)
    return method, path, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _skip_body(stream: ClientConnection, buffer: bytearray, headers: dict[str, str]) -> None:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        tail = bytes(buffer)
        while not tail.endswith(b"0\r\n\r\n") and (data := await stream.read(READ)):
            tail = tail[-5:] + data
        buffer.clear()
        return
    length = headers.get("content-length", "")
    remaining = int(length) if length.isascii() and length.isdecimal() and len(length) < 16 else 0
    while remaining > 0:
        skipped = min(remaining, len(buffer))
        del buffer[:skipped]
        remaining -= skipped
        if remaining:
            data = await stream.read(READ)
            if not data:
                return
            buffer += data


def _encode(answer: HttpAnswer, method: str, *, closes_connection: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        *([f"Server: {answer.server}"] if answer.server else []),
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        *(["Connection: close"] if closes_connection else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + (b"" if method == "HEAD" else answer.body)
