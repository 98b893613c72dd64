"""HTTP/2 over an open connection, as far as probes need it: one stream, and headers without compression."""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
ACK, END_STREAM, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
STREAM: Final = 1
MAX_FRAME: Final = 1 << 14
"""What a peer may send without another setting (RFC 9113, SETTINGS_MAX_FRAME_SIZE)."""


class NotHttp2(ValueError):
    """The server sends something else than HTTP/2."""


class StreamEnded(ValueError):
    """The server ends the stream or the connection before its response."""


class HTTP2Frame(NamedTuple):
    kind: int
    flags: int
    payload: bytes


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def _header(name: str, value: str) -> bytes:
    """Return a header in HPACK's format, without compression."""
    return b"\x00" + _text(name) + _text(value)


def varint(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def _text(text: str) -> bytes:
    data = text.encode()
    # The first byte has seven bits of the length; longer texts have further bytes.
    return (bytes([len(data)]) if len(data) < 127 else b"\x7f" + varint(len(data) - 127)) + data


async def send_request(
    writer: asyncio.StreamWriter, headers: Mapping[str, str], body: bytes | None = None
) -> None:
    """Open the connection, and send a request on its only stream."""
    block = b"".join(_header(name, value) for name, value in headers.items())
    writer.write(PREFACE + _frame(SETTINGS, 0, 0, b""))
    writer.write(_frame(HEADERS, END_HEADERS | (END_STREAM if body is None else 0), STREAM, block))
    if body is not None:
        writer.write(_frame(DATA, END_STREAM, STREAM, body))
    await writer.drain()


async def next_frame(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HTTP2Frame:
    """Return the next frame of the response; settings and pings are acknowledged. Raise `NotHttp2` or `StreamEnded`."""
    while True:
        head = await reader.readexactly(9)
        length, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
        if length > MAX_FRAME:
            raise NotHttp2
        payload = await reader.readexactly(length)
        if kind in (RST, GOAWAY):
            raise StreamEnded
        if kind not in (SETTINGS, PING):
            return HTTP2Frame(kind, flags, payload)
        if not flags & ACK:
            writer.write(_frame(kind, ACK, 0, payload if kind == PING else b""))
