"""A response as bytes of HTTP, and the requests that are refused before they reach the handler.

aiohttp's own response makes a dictionary of headers for each response, and passes a body to TLS as a whole: some
megabytes are then copied three times, each time into memory that the kernel has to provide page by page, which takes
longer than to encrypt and send them. Here the usual lines of a head are cached, and pieces of a body are so small that
their copies reuse memory.

A request that is refused before authentication gets the text of Go's net/http. aiohttp's parser refuses most of them
with its own messages: `refusal_of_head` finds Go's from the bytes of the head. The parser accepts some requests that Go
refuses: `refusal_of_request` finds these.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from http.client import responses
from itertools import chain
from typing import Final

from aiohttp import hdrs
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion, HttpVersion10, HttpVersion11, RawRequestMessage, StreamWriter

from mockube.apiserver.request.response import NOT_CACHED, PIECE, Response, compress, warning_headers
from mockube.component_base.http1 import requests

BAD_REQUEST: Final = "400 Bad Request"
TOO_LARGE: Final = "431 Request Header Fields Too Large"
NOT_IMPLEMENTED: Final = "501 Not Implemented"
_MALFORMED_HOST: Final = f"{BAD_REQUEST}: malformed Host header"
_NO_CONNECT: Final = "405 Method Not Allowed"
_VERSION: Final = "505 HTTP Version Not Supported: unsupported protocol version"
_COMPRESSED: Final = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\nTransfer-Encoding: chunked\r\n"
_REQUEST_LINE: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [^ ]+ HTTP/(\d)\.(\d)", re.DOTALL)
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-][!#$%&'*+.^_`|~0-9A-Za-z -]*")
"""The name of a header as Go parses it first; a name with a space is refused later, with another message."""
_VERSIONS: Final = (HttpVersion11, HttpVersion10)


class Refusal(Response):
    """A response with Go's status line and text, after which the connection is closed."""

    __slots__ = ("status_line",)

    def __init__(self, status_line: str) -> None:
        body = "Unsupported transfer encoding" if status_line == NOT_IMPLEMENTED else status_line
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
    """Write the bytes of `render` in pieces, with a compressed body if `response.compressed`."""
    if not response.compressed or message.version < HttpVersion11:
        framing = b"Content-Length: %d\r\n" % response.size
        head = _head(response, message.version, framing, added, keeps_open=keeps_open)
        for piece in gather_pieces(chain((head,), response.parts)):
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
    """Return the status line and the headers; a redirect or a 304 response has no Content-Type."""
    has_type = bool(content_type) and not HTTPStatus.MULTIPLE_CHOICES <= code < HTTPStatus.BAD_REQUEST
    status = f"HTTP/1.1 {code} {responses.get(code, '')}"
    typed = [f"{hdrs.CONTENT_TYPE}: {content_type}"] if has_type else []
    return "\r\n".join(
        [status, *typed, *(f"{name}: {value}" for name, value in headers.items()), ""]
    ).encode()


@lru_cache(maxsize=256)
def _usual_lines(code: int, content_type: str) -> bytes:
    return _lines(code, content_type, NOT_CACHED)


def gather_pieces(parts: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield the bytes of the parts in pieces: small parts are joined, and a large part is divided."""
    gathered: list[bytes | memoryview] = []
    size = 0
    for part in parts:
        gathered.append(part)
        size += len(part)
        if size >= PIECE:
            yield from _cut(b"".join(gathered))
            gathered, size = [], 0
    if size:
        yield b"".join(gathered)


def _cut(data: bytes) -> Iterator[bytes]:
    if len(data) < 2 * PIECE:
        yield data
        return
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


def refusal_of_head(data: bytes) -> str:
    """Return the status line for a head that the parser has refused."""
    head, end, _ = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if not end or line is None:
        return BAD_REQUEST
    fields = [line.partition(b":") for line in lines]
    if not all(colon and _NAME.fullmatch(name) for name, colon, _ in fields):
        return BAD_REQUEST
    values: dict[bytes, list[bytes]] = {}
    for name, _, value in fields:
        values.setdefault(name.lower(), []).append(value.strip())
    return _refusal_of_fields(values, (int(line[1]), int(line[2])), is_connect=first.startswith(b"CONNECT "))


def _refusal_of_fields(
    values: dict[bytes, list[bytes]], version: tuple[int, int], *, is_connect: bool
) -> str:
    hosts, is_old = values.get(b"host", ()), version < (1, 1)
    if len(hosts) > 1:
        return BAD_REQUEST
    if not is_old and not _is_chunked_or_absent(values.get(b"transfer-encoding", ())):
        return NOT_IMPLEMENTED
    if not all(length.isdigit() for length in values.get(b"content-length", ())):
        return BAD_REQUEST
    if version not in _VERSIONS:
        return _VERSION
    if not hosts and not is_old and not is_connect:
        return f"{BAD_REQUEST}: missing required Host header"
    if hosts and not requests.is_host(hosts[0].decode("latin-1")):
        return _MALFORMED_HOST
    return f"{BAD_REQUEST}: invalid header name" if any(b" " in name for name in values) else BAD_REQUEST


def refusal_of_request(message: RawRequestMessage) -> str:
    """Return the status line for a request that the parser accepts and Go refuses; "" for all others."""
    version, headers, target = message.version, message.headers, message.path
    if version not in _VERSIONS:
        return _VERSION if headers else BAD_REQUEST  # a request of HTTP/0.9 is a single line
    if hdrs.TRANSFER_ENCODING in headers:
        if version == HttpVersion10:
            return BAD_REQUEST  # Go ignores the header, and other servers do not
        encodings = [
            value.strip().encode("latin-1", "replace") for value in headers.getall(hdrs.TRANSFER_ENCODING)
        ]
        if not _is_chunked_or_absent(encodings):
            return NOT_IMPLEMENTED
    if not requests.is_host(headers.get(hdrs.HOST, "")):
        return _MALFORMED_HOST
    if message.method == hdrs.METH_CONNECT and not target.startswith("/"):
        return _NO_CONNECT
    return "" if requests.is_target(target) or target == "*" else BAD_REQUEST


def _is_chunked_or_absent(encodings: Sequence[bytes]) -> bool:
    return not encodings or (len(encodings) == 1 and encodings[0].lower() == b"chunked")
