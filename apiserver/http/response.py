"""A response that is there in full, as bytes of HTTP: its head with its body, or a large body piece by piece.

aiohttp's own response makes a dictionary of headers anew for each one, and hands a body to TLS whole: some megabytes
are then copied three times, each time into memory that the system has to give page by page, which takes longer than
to encrypt and send them. Here a head is lines that were put together before, and pieces are small enough that their
copies stay where they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from http.client import responses
from typing import Final

from aiohttp import hdrs
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion, HttpVersion10, HttpVersion11, RawRequestMessage, StreamWriter

from mockube.apiserver.request.compression import compress
from mockube.apiserver.request.response import NOT_CACHED, PIECE, Response
from mockube.apiserver.request.warnings import warning_headers

_COMPRESSED: Final = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\nTransfer-Encoding: chunked\r\n"


class Refusal(Response):
    """Return a response with Go's status line and text, to a client that sends no HTTP or a request that is too large."""

    __slots__ = ("status_line",)

    def __init__(self, status_line: str, body: str) -> None:
        super().__init__(int(status_line[:3]), [body.encode()], "text/plain; charset=utf-8")
        self.status_line = b"HTTP/1.1 %b" % status_line.encode()


def render(response: Response, message: RawRequestMessage, added: str, *, keeps_open: bool) -> bytes:
    """Return all bytes of a response to a message; `added` are lines of headers besides those of the response."""
    has_length = response.status != HTTPStatus.NOT_MODIFIED
    framing = b"Content-Length: %d\r\n" % response.size if has_length else b""
    head = _head(response, message.version, framing, added, keeps_open=keeps_open)
    return head if message.method == hdrs.METH_HEAD else b"".join((head, *response.parts))


async def write_pieces(
    writer: StreamWriter, response: Response, message: RawRequestMessage, added: str, *, keeps_open: bool
) -> None:
    """Write the same bytes piece by piece, compressed if they are to be."""
    if not response.compressed or message.version < HttpVersion11:
        framing = b"Content-Length: %d\r\n" % response.size
        head = _head(response, message.version, framing, added, keeps_open=keeps_open)
        for piece in gather_pieces((head, *response.parts)):
            await writer.write(piece)
        await writer.write_eof()
        return
    await writer.write(_head(response, message.version, _COMPRESSED, added, keeps_open=keeps_open))
    writer.enable_chunking()
    async for piece in compress(gather_pieces(response.parts)):
        await writer.write(piece)
    await writer.write_eof()


def _head(response: Response, version: HttpVersion, framing: bytes, added: str, *, keeps_open: bool) -> bytes:
    if response.headers is NOT_CACHED:
        lines = _usual_lines(response.status, response.content_type)
    else:
        lines = _lines(response.status, response.content_type, response.headers)
    if version == HttpVersion10:
        lines = b"HTTP/1.0" + lines[len(b"HTTP/1.1") :]
        connection = b"Connection: keep-alive\r\n" if keeps_open else b""
    else:
        connection = b"" if keeps_open else b"Connection: close\r\n"
    if type(response) is Refusal:
        lines = b"\r\n".join((response.status_line, lines.partition(b"\r\n")[2]))
        connection = b"Connection: close\r\n"
    if response.warnings:
        lines += b"".join(warning_headers(response.warnings))
    if response.retry_after:
        lines += b"Retry-After: %d\r\n" % response.retry_after
    return b"%b%b%bDate: %b\r\n%b\r\n" % (
        *(lines, added.encode("utf-8", "replace"), framing),
        *(rfc822_formatted_time().encode(), connection),
    )


def _lines(code: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    """Return the status line and the headers; a redirect, or what was not modified, has no type."""
    has_type = bool(content_type) and not HTTPStatus.MULTIPLE_CHOICES <= code < HTTPStatus.BAD_REQUEST
    status = f"HTTP/1.1 {code} {responses.get(code, '')}"
    typed = [f"{hdrs.CONTENT_TYPE}: {content_type}"] if has_type else []
    return "\r\n".join(
        [status, *typed, *(f"{name}: {value}" for name, value in headers.items()), ""]
    ).encode()


@lru_cache(maxsize=256)
def _usual_lines(code: int, content_type: str) -> bytes:
    return _lines(code, content_type, NOT_CACHED)


def gather_pieces(parts: Sequence[bytes | memoryview]) -> Iterator[bytes]:
    """Yield the same bytes in pieces: small parts together, a large part cut into several."""
    start = size = 0
    for end, part in enumerate(parts, start=1):
        size += len(part)
        if size >= PIECE:
            yield from _cut(b"".join(parts[start:end]))
            start, size = end, 0
    if size:
        yield b"".join(parts[start:])


def _cut(data: bytes) -> Iterator[bytes]:
    if len(data) < 2 * PIECE:
        yield data
        return
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
