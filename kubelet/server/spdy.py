"""Parsing and writing of SPDY/3.1 frames, for the streams of exec, attach and port-forward. No I/O.

Only the parts of the protocol that these use are supported: streams, headers, data, resets, pings and GOAWAY.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from . import limits

VERSION: Final = 3
FIN: Final = 0x01
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
_HEAD: Final = struct.Struct("!II")

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow"
    " authorization cache-control connection content-base content-encoding content-language content-length"
    " content-location content-md5 content-range content-type date etag expect expires from host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma"
    " proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade"
    " user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie"
    " keep-alive origin"
)
_TEXT: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = (
    b"".join(len(word).to_bytes(4, "big") + word.replace("_", " ").encode() for word in _WORDS.split())
    + _TEXT.encode()
)
"""The compression dictionary of headers, from section 2.6.10.1 of the specification."""


class SpdyError(Exception):
    """A received frame is invalid or too large."""


class ControlFrame(Struct, frozen=True):
    type: int
    stream: int
    """The stream's id; 0 for a frame without a stream."""
    flags: int = 0
    headers: Mapping[str, str] | None = None
    value: int = 0
    """The status of a RST_STREAM or a GOAWAY, or the id of a PING."""


class DataFrame(Struct, frozen=True):
    stream: int
    data: bytes
    flags: int = 0

    @property
    def is_last(self) -> bool:
        return bool(self.flags & FIN)


Frame = ControlFrame | DataFrame


class FrameReader:
    """A parser of received bytes. It buffers at most one incomplete frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add received bytes; yield the frames that are complete."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            first, second = _HEAD.unpack_from(self._buffer)
            size = second & 0xFFFFFF
            if size > limits.MAX_FRAME:
                raise SpdyError(f"a frame of {size} bytes is too large")
            if len(self._buffer) < _HEAD.size + size:
                return
            body = bytes(self._buffer[_HEAD.size : _HEAD.size + size])
            del self._buffer[: _HEAD.size + size]
            flags = second >> 24
            if first >> 31:
                frame = self._control(first, flags, body)
                if frame is not None:
                    yield frame
            else:
                yield DataFrame(first, body, flags)

    def _control(self, first: int, flags: int, body: bytes) -> ControlFrame | None:
        version, kind = first >> 16 & 0x7FFF, first & 0xFFFF
        if version != VERSION:
            raise SpdyError(f"version {version} of SPDY is not supported")
        if kind in (SETTINGS, WINDOW_UPDATE):
            return None
        minimum = {SYN_STREAM: 10, RST_STREAM: 8, GOAWAY: 8}.get(kind, 4)
        if len(body) < minimum:
            raise SpdyError("a control frame is too short")
        stream = int.from_bytes(body[:4], "big") & 0x7FFFFFFF
        match kind:
            case 1:
                return ControlFrame(kind, stream, flags, self._headers(body[10:]))
            case 2 | 8:
                return ControlFrame(kind, stream, flags, self._headers(body[4:]))
            case 3 | 7:
                return ControlFrame(kind, stream, flags, value=int.from_bytes(body[4:8], "big"))
            case 6:
                return ControlFrame(kind, 0, flags, value=int.from_bytes(body[:4], "big"))
            case _:
                return None

    def _headers(self, compressed: bytes) -> Mapping[str, str]:
        try:
            block = self._inflate.decompress(compressed, limits.MAX_FRAME_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"the headers cannot be read: {error}") from error
        if self._inflate.unconsumed_tail:
            raise SpdyError("the headers are too large")
        return _unpack_headers(block)


class FrameWriter:
    """An encoder of the frames of one connection, whose headers share a compression context."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def syn_stream(self, stream: int, headers: Mapping[str, str], *, last: bool = False) -> bytes:
        block = self._compress(headers)
        return _control(SYN_STREAM, struct.pack("!IIH", stream, 0, 0) + block, FIN if last else 0)

    def syn_reply(self, stream: int, headers: Mapping[str, str], *, last: bool = False) -> bytes:
        block = self._compress(headers)
        return _control(SYN_REPLY, stream.to_bytes(4, "big") + block, FIN if last else 0)

    def reset(self, stream: int, status: int) -> bytes:
        return _control(RST_STREAM, struct.pack("!II", stream, status))

    def ping(self, number: int) -> bytes:
        return _control(PING, number.to_bytes(4, "big"))

    def goaway(self, last_stream: int, status: int = 0) -> bytes:
        return _control(GOAWAY, struct.pack("!II", last_stream, status))

    def data(self, stream: int, data: bytes, *, last: bool = False) -> bytes:
        return _HEAD.pack(stream, (FIN if last else 0) << 24 | len(data)) + data

    def _compress(self, headers: Mapping[str, str]) -> bytes:
        parts = [len(headers).to_bytes(4, "big")]
        for name, value in headers.items():
            for text in (name.lower(), value):
                encoded = text.encode("utf-8", "replace")
                parts += [len(encoded).to_bytes(4, "big"), encoded]
        return self._deflate.compress(b"".join(parts)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: int, body: bytes, flags: int = 0) -> bytes:
    return _HEAD.pack(1 << 31 | VERSION << 16 | kind, flags << 24 | len(body)) + body


def _unpack_headers(block: bytes) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    count, position = int.from_bytes(block[:4], "big"), 4
    for _ in range(min(count, limits.MAX_FRAME_HEADERS)):
        texts = []
        for _ in range(2):
            size = int.from_bytes(block[position : position + 4], "big")
            if len(block) < position + 4 + size:
                raise SpdyError("the headers end too early")
            texts.append(block[position + 4 : position + 4 + size].decode("utf-8", "replace"))
            position += 4 + size
        headers[texts[0].lower()] = texts[1]
    return headers
