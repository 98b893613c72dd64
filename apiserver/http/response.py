"""An answer that is there in full, written as it is: its head with its body, or a large body piece by piece.

aiohttp's own response makes a dictionary of headers anew for each answer, and hands a body to TLS whole: some megabytes
are then copied three times, each time into memory that the system has to give page by page, which takes longer than
to encrypt and send them. Here a head is lines that were put together before, and pieces are small enough that their
copies stay where they are.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from http.client import responses

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion10, HttpVersion11

from mockube.apiserver.request import compression as compress

PIECE = 256 * 1024
"""Bytes, or a little more."""


class Answer(web.StreamResponse):
    """Headers are whole lines, and the body may come in as many parts as it likes.

    `retry_after` is after how many seconds the client may come again, if it is told. What is `compressed` is so while it
    is written, piece by piece, so that no client is owed a compressed copy of it all.
    """

    def __init__(
        self,
        code: int,
        content_type: str,
        body: Sequence[bytes | memoryview],
        headers: Sequence[bytes] = (),
        *,
        retry_after: int = 0,
        compressed: bool = False,
    ) -> None:
        super().__init__(status=code)
        self._lines = _usual_lines(code, content_type) + b"".join(headers)
        if retry_after:
            self._lines += b"Retry-After: %d\r\n" % retry_after
        self.retry_after = retry_after
        self._parts = body
        self._compressed = compressed
        self._written = False
        self._size = sum(map(len, body))
        self.is_large = self._size > PIECE
        """Whether writing it may have to wait for the client."""

    @property
    def body(self) -> bytes:
        return b"".join(self._parts)

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        self._asked = request
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        assert not data, "the body is known already"
        if self._written:
            return
        self._written = True
        writer, parts, size = self._asked.writer, self._parts, self._size
        if self._compressed and self._asked.version >= HttpVersion11:
            await self._write_compressed(writer)
            return
        head = self._head(b"Content-Length: %d\r\n" % size)
        if self._asked.method == hdrs.METH_HEAD:
            await writer.write_eof(head)
        elif size <= PIECE:
            await writer.write_eof(b"".join((head, *parts)))
        else:
            for piece in gathered((head, *parts)):
                await writer.write(piece)
            await writer.write_eof()

    async def _write_compressed(self, writer: AbstractStreamWriter) -> None:
        head = self._head(compress.HEADERS)
        if self._asked.method == hdrs.METH_HEAD:
            await writer.write_eof(head)
            return
        await writer.write(head)
        writer.enable_chunking()
        async for piece in compress.compressed(gathered(self._parts)):
            await writer.write(piece)
        await writer.write_eof()

    def _head(self, framing: bytes) -> bytes:
        date = rfc822_formatted_time().encode()
        return b"%b%bDate: %b\r\n%b\r\n" % (self._lines, framing, date, self._connection())

    def _connection(self) -> bytes:
        """What is to be said of the connection, where it is not what is usual in the client's version of HTTP."""
        is_old = self._asked.version == HttpVersion10
        if self._keep_alive:
            return b"Connection: keep-alive\r\n" if is_old else b""
        return b"" if is_old else b"Connection: close\r\n"


@lru_cache(maxsize=256)
def _usual_lines(code: int, content_type: str) -> bytes:
    lines = (
        f"HTTP/1.1 {code} {responses.get(code, '')}",
        f"Content-Type: {content_type}",
        "Cache-Control: no-cache, private",
        "",
    )
    return "\r\n".join(lines).encode()


def gathered(parts: Sequence[bytes | memoryview]) -> Iterator[bytes]:
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
