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

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion10, HttpVersion11

from mockube.apiserver.request.compression import compress
from mockube.apiserver.request.response import NOT_CACHED, PIECE, Response
from mockube.apiserver.request.warnings import warning_headers

NONE_ADDED: Final[Mapping[str, str]] = {}
_COMPRESSED = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\nTransfer-Encoding: chunked\r\n"


class Answer(web.StreamResponse):
    """A response as aiohttp's connections take it."""

    def __init__(self, response: Response, added: Mapping[str, str] = NONE_ADDED) -> None:
        """`added` are headers besides those of the response."""
        super().__init__(status=response.status)
        self._added = added
        self._response = response
        self._is_written = False

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        self._begin(request)
        return request.writer

    def take_whole(self, request: web.BaseRequest) -> bytes | None:
        """Return all bytes of a small answer, which count as written; None if it has to be written piece by piece."""
        response = self._response
        if self._is_written or response.compressed or response.size > PIECE:
            return None
        self._is_written = True
        self._begin(request)
        return self._whole()

    def _begin(self, request: web.BaseRequest) -> None:
        self._asked = request
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive

    def _whole(self) -> bytes:
        response = self._response
        has_length = response.status != HTTPStatus.NOT_MODIFIED
        head = self._head(b"Content-Length: %d\r\n" % response.size if has_length else b"")
        return head if self._asked.method == hdrs.METH_HEAD else b"".join((head, *response.parts))

    async def write_eof(self, data: bytes = b"") -> None:
        assert not data, "the body is known already"
        if self._is_written:
            return
        self._is_written = True
        response, writer = self._response, self._asked.writer
        parts, size = response.parts, response.size
        if response.compressed and self._asked.version >= HttpVersion11:
            await self._write_compressed(writer)
            return
        if size <= PIECE or self._asked.method == hdrs.METH_HEAD:
            await writer.write_eof(self._whole())
            return
        for piece in gather_pieces((self._head(b"Content-Length: %d\r\n" % size), *parts)):
            await writer.write(piece)
        await writer.write_eof()

    async def _write_compressed(self, writer: AbstractStreamWriter) -> None:
        head = self._head(_COMPRESSED)
        if self._asked.method == hdrs.METH_HEAD:
            await writer.write_eof(head)
            return
        await writer.write(head)
        writer.enable_chunking()
        async for piece in compress(gather_pieces(self._response.parts)):
            await writer.write(piece)
        await writer.write_eof()

    def _head(self, framing: bytes) -> bytes:
        date = rfc822_formatted_time().encode()
        lines = self._lines(self._response)
        return b"%b%bDate: %b\r\n%b\r\n" % (lines, framing, date, self._connection())

    def _lines(self, response: Response) -> bytes:
        if response.headers is NOT_CACHED:
            lines = _usual_lines(response.status, response.content_type)
        else:
            lines = _lines(response.status, response.content_type, response.headers)
        if self._asked.version == HttpVersion10:
            lines = b"HTTP/1.0" + lines[len(b"HTTP/1.1") :]
        if self._added:
            added = "".join(f"{name}: {value}\r\n" for name, value in self._added.items())
            lines += added.encode("utf-8", "replace")
        if response.warnings:
            lines += b"".join(warning_headers(response.warnings))
        return lines + b"Retry-After: %d\r\n" % response.retry_after if response.retry_after else lines

    def _connection(self) -> bytes:
        """What is to be said of the connection, where it is not what is usual in the client's version of HTTP."""
        is_old = self._asked.version == HttpVersion10
        if self._keep_alive:
            return b"Connection: keep-alive\r\n" if is_old else b""
        return b"" if is_old else b"Connection: close\r\n"


def _lines(code: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    """Return the status line and the headers; a redirect, or what was not modified, has no type."""
    has_type = not HTTPStatus.MULTIPLE_CHOICES <= code < HTTPStatus.BAD_REQUEST
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
