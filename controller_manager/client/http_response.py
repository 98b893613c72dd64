"""Parse an HTTP/1.1 response from the bytes of a connection. Pure."""

import re
from typing import Final, NamedTuple

MOST_HEAD: Final = 1 << 16
"""Bytes of a status line and the headers."""
MOST_LINE: Final = 1 << 12
"""Bytes of a line between chunks."""

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n]*)?")
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?", re.DOTALL)
_WITHOUT_BODY: Final = frozenset({204, 304})
_SWITCHING: Final = 101


class Response(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    """The headers by lower-case names; the last value of a repeated one."""
    body: bytes
    is_reusable: bool
    """Whether another request may be sent over the same connection."""


class MalformedResponse(Exception):
    """The bytes are no HTTP/1.1 response."""


class ResponseReader:
    """For one answer."""

    def __init__(self, *, is_head: bool = False) -> None:
        """`is_head`: whether the answer is to a HEAD, and has no body."""
        self._is_head = is_head
        self._partial_head = b""
        """The bytes of an incomplete head."""
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._is_reusable = False
        self._parts: list[bytes] = []
        self._missing: int | None = None
        """Bytes of the body that are still missing; None if the body ends with the connection."""
        self._chunks: _Chunks | None = None

    def feed(self, data: bytes) -> Response | None:
        """Take the next bytes; return the response once it is complete."""
        if not self._status:
            rest = self._take_head(self._partial_head + data)
            if rest is None:
                return None
            data = rest
        if self._chunks is not None:
            is_whole = self._chunks.feed(data)
            return self._response(b"".join(self._chunks.parts), self._chunks.surplus) if is_whole else None
        self._parts.append(data)
        if self._missing is None:
            return None
        self._missing -= len(data)
        if self._missing > 0:
            return None
        body, surplus = b"".join(self._parts), -self._missing
        return self._response(body[: len(body) - surplus], surplus)

    def end(self) -> Response | None:
        """The connection has ended: return the response if its body ends with the connection."""
        is_whole = self._status and self._chunks is None and self._missing is None
        return self._response(b"".join(self._parts), surplus=0) if is_whole else None

    def _response(self, body: bytes, surplus: int) -> Response:
        return Response(self._status, self._headers, body, self._is_reusable and not surplus)

    def _take_head(self, data: bytes) -> bytes | None:
        """Return what follows the head, or None if the head is not complete."""
        head, end, rest = data.partition(b"\r\n\r\n")
        if len(head) > MOST_HEAD:
            raise MalformedResponse("the response header is too long")
        if not end:
            self._partial_head = data
            return None
        first, *lines = head.split(b"\r\n")
        matched = _STATUS_LINE.fullmatch(first)
        if matched is None:
            raise MalformedResponse(f"the response begins with {first[:100]!r}")
        status, headers = int(matched[2]), dict(map(_header, lines))
        if status == _SWITCHING:
            raise MalformedResponse("the response switches to another protocol")
        if status < 200:
            return self._take_head(rest)
        self._status, self._headers = status, headers
        self._expect_body(headers)
        self._is_reusable = (
            matched[1] == b"1"
            and headers.get(b"connection", b"").lower() != b"close"
            and (self._missing is not None or self._chunks is not None)
        )
        return rest

    def _expect_body(self, headers: dict[bytes, bytes]) -> None:
        encoding, length = headers.get(b"transfer-encoding"), headers.get(b"content-length")
        if self._is_head or self._status in _WITHOUT_BODY:
            self._missing = 0
        elif encoding is not None:
            if encoding.lower() != b"chunked":
                raise MalformedResponse(f"the response is encoded as {encoding[:100]!r}")
            self._chunks = _Chunks()
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise MalformedResponse(f"the response has a length of {length[:100]!r}")
            self._missing = int(length)


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon:
        raise MalformedResponse(f"invalid response header {line[:100]!r}")
    return name.lower(), value.strip(b" \t")


class _Chunks:
    """A body in chunks."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.surplus = 0
        """Return the number of bytes after the end."""
        self._partial_line = b""
        """The bytes of an incomplete line."""
        self._missing = 0
        self._is_after_chunk = False
        self._is_after_last = False

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; returns whether the body is complete."""
        data, at = self._partial_line + data, 0
        self._partial_line = b""
        while at < len(data):
            if self._missing:
                part = data[at : at + self._missing]
                self.parts.append(part)
                self._missing -= len(part)
                at += len(part)
                continue
            end = data.find(b"\r\n", at)
            if (len(data) if end < 0 else end) - at > MOST_LINE:
                raise MalformedResponse("a line between chunks of the response is too long")
            if end < 0:
                self._partial_line = data[at:]
                return False
            line, at = data[at:end], end + 2
            if self._is_end(line):
                self.surplus = len(data) - at
                return True
        return False

    def _is_end(self, line: bytes) -> bool:
        """Take a line that is no part of a chunk."""
        if self._is_after_last:
            return not line
        if self._is_after_chunk:
            if line:
                raise MalformedResponse(f"a chunk of the response is longer than its size: {line[:100]!r}")
            self._is_after_chunk = False
            return False
        matched = _CHUNK_SIZE.fullmatch(line)
        if matched is None:
            raise MalformedResponse(f"a chunk of the response has a size of {line[:100]!r}")
        self._missing = int(matched[1], 16)
        self._is_after_chunk = bool(self._missing)
        self._is_after_last = not self._missing
        return False
