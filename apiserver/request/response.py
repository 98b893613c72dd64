"""A response, independent of the transport: its body in parts, warnings as headers, compression."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import orjson

JSON: Final = "application/json"
PIECE: Final = 256 * 1024
"""The approximate number of bytes in one write."""
_LARGE: Final = 32 * 1024
"""Bytes; fewer are compressed in less time than a thread needs to begin."""
MIN_COMPRESSED_SIZE: Final = 128 * 1024
"""Bytes; a smaller response is not compressed."""
ALL_WARNINGS_SIZE: Final = 4096
"""Characters of all warnings together. If there are more, each is cut, and those beyond the limit are dropped."""
WARNING_SIZE: Final = 256
"""Characters of a warning that is cut."""
NOT_CACHED: Final[Mapping[str, str]] = {"Cache-Control": "no-cache, private"}
NOT_SNIFFED: Final = {**NOT_CACHED, "X-Content-Type-Options": "nosniff"}
_TEXT: Final = "text/plain; charset=utf-8"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that a header cannot have: a warning with one of them is dropped."""


class LazyParts:
    """The parts of a body that are made while it is written, so that a client that does not read costs no copy of the body."""

    __slots__ = ("_make", "size")

    def __init__(self, make: Callable[[], Iterator[bytes | memoryview]], size: int) -> None:
        self._make = make
        self.size = size
        """The bytes of all parts together."""

    def __iter__(self) -> Iterator[bytes | memoryview]:
        return self._make()


Parts: TypeAlias = Sequence[bytes | memoryview] | LazyParts


class Response:
    """A status, headers, and the parts of a body; the body of a stream has no parts here.

    `retry_after` is the Retry-After header in seconds, if it is not 0.
    """

    __slots__ = (
        "compressed",
        "content_type",
        "headers",
        "logged_object",
        "parts",
        "retry_after",
        "size",
        "status",
        "status_object",
        "warnings",
    )

    def __init__(
        self,
        status: int,
        parts: Parts = (),
        content_type: str = JSON,
        *,
        headers: Mapping[str, str] = NOT_CACHED,
        warnings: Sequence[str] = (),
        retry_after: int = 0,
    ) -> None:
        self.status = status
        self.parts = parts
        self.content_type = content_type
        self.headers = headers
        self.warnings = warnings
        self.retry_after = retry_after
        self.compressed = False
        """Whether the body is compressed while it is written, piece by piece, so that no compressed copy is in memory."""
        self.status_object = b""
        """The Status of an error or a deletion as JSON, for the audit log; b"" for other objects."""
        self.logged_object = b""
        """The object as JSON on one line, if the audit log contains it."""
        self.size = parts.size if isinstance(parts, LazyParts) else sum(map(len, parts))

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def is_large(self) -> bool:
        """Whether writing may have to wait for the client."""
        return self.size > PIECE


def json_body(parts: Parts, *, pretty: bool) -> Parts:
    """Return JSON as Go's encoders write it: with a newline at its end, or indented and without one."""
    if pretty:
        return [orjson.dumps(orjson.loads(b"".join(parts)), option=orjson.OPT_INDENT_2)]
    if isinstance(parts, LazyParts):
        return LazyParts(lambda: chain(parts, (b"\n",)), parts.size + 1)
    return [*parts, b"\n"]


def too_many_requests() -> Response:
    """Return a refusal that can be retried after a second; plain text is cheap."""
    return text_response("Too many requests, please try again later.\n", 429, retry_after=1)


def text_response(text: str, code: int = 200, *, retry_after: int = 0) -> Response:
    return Response(code, [text.encode()], _TEXT, headers=NOT_SNIFFED, retry_after=retry_after)


def warning_headers(warnings: Collection[str]) -> Sequence[bytes]:
    """Return the header lines of warnings: each once, and limited in number and length."""
    return (
        [b"Warning: 299 - %b\r\n" % orjson.dumps(text) for text in fit_warnings(warnings)] if warnings else ()
    )


def fit_warnings(warnings: Collection[str]) -> Sequence[str]:
    """Return all different warnings if they fit; otherwise cut each, and drop those beyond the limit."""
    texts = [text for text in dict.fromkeys(warnings) if text and not _CONTROL.search(text)]
    total = 0
    for count, text in enumerate(texts, 1):
        total += len(text)
        if total > ALL_WARNINGS_SIZE:
            return _cut(texts, count)
    return texts


def _cut(texts: Sequence[str], minimum: int) -> Sequence[str]:
    cut_texts = [text[:WARNING_SIZE] for text in texts[:minimum]]
    total = sum(map(len, cut_texts))
    for text in texts[minimum:]:
        if total >= ALL_WARNINGS_SIZE:
            break
        cut_texts.append(text[:WARNING_SIZE])
        total += len(cut_texts[-1])
    return cut_texts


async def compress(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Compress with gzip at the fastest level, as upstream.

    That takes some milliseconds a megabyte, so each piece is compressed in a thread; zlib releases the interpreter's lock.
    """
    compressor = stream_compressor()
    for piece in pieces:
        chunk = await asyncio.to_thread(compressor.compress, piece)
        if chunk:
            yield chunk
    yield compressor.flush()


def stream_compressor() -> "zlib._Compress":
    """Return a compressor of one gzip stream at the fastest level."""
    return zlib.compressobj(zlib.Z_BEST_SPEED, zlib.DEFLATED, 16 + zlib.MAX_WBITS)


async def compress_and_flush(compressor: "zlib._Compress", data: bytes) -> bytes:
    """Compress data so that the client can read all of it now, in a thread if the data are large."""
    if len(data) < _LARGE:
        return compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
    compressed = await asyncio.to_thread(compressor.compress, data)
    return compressed + compressor.flush(zlib.Z_SYNC_FLUSH)
