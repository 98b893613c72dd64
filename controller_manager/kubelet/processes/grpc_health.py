"""The gRPC call of a probe, grpc.health.v1.Health/Check, in HTTP/2 frames without compression; and such frames."""

import asyncio
import struct
from collections.abc import Iterator
from typing import Final

from mockube.apimachinery.schema import minors

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
ACK, END_STREAM, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
STREAM: Final = 1
MAX_FRAME: Final = 1 << 14
MAX_RESPONSE: Final = 1 << 16
_STATUSES: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")


class GrpcError(Exception):
    """The gRPC call failed."""


async def check_health(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    authority: str,
    service: str,
    scheme: str = "http",
) -> str:
    """Return the status of a service; the service "" is the whole server."""
    name = service.encode()
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    body = b"\x00" + struct.pack(">I", len(message)) + message
    writer.write(PREFACE + frame(SETTINGS, 0, 0, b""))
    writer.write(frame(HEADERS, END_HEADERS, STREAM, b"".join(_headers(authority, scheme))))
    writer.write(frame(DATA, END_STREAM, STREAM, body))
    await writer.drain()
    return _status(await _read_response(reader, writer))


async def _read_response(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Read the response; return the bytes of its body."""
    body = bytearray()
    while True:
        header = await reader.readexactly(9)
        length, kind, flags = int.from_bytes(header[:3]), header[3], header[4]
        if length > MAX_FRAME:
            raise GrpcError("the response is not HTTP/2")
        payload = await reader.readexactly(length)
        if kind == SETTINGS and not flags & ACK:
            writer.write(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            writer.write(frame(PING, ACK, 0, payload))
        elif kind in (RST, GOAWAY):
            raise GrpcError("the server ended the call")
        elif kind == DATA:
            padding = payload[0] if flags & PADDED and payload else 0
            body += payload[1 : len(payload) - padding] if flags & PADDED else payload
        if len(body) > MAX_RESPONSE:
            raise GrpcError("the response is too long")
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            return bytes(body)


def _status(body: bytes) -> str:
    if len(body) < 5:
        raise GrpcError("the server does not implement the health protocol, or has no such service")
    message = body[5:]
    number = message[1] if len(message) > 1 and message[0] == 8 else 0
    return _STATUSES[number] if number < len(_STATUSES) else str(number)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def _headers(authority: str, scheme: str) -> Iterator[bytes]:
    pairs = (
        (":method", "POST"),
        (":scheme", scheme),
        (":path", "/grpc.health.v1.Health/Check"),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("user-agent", f"kube-probe/{minors.NEWEST}"),
    )
    return (header(name, value) for name, value in pairs)


def header(name: str, value: str) -> bytes:
    """Return a header in HPACK's format, without compression."""
    return b"\x00" + _text(name) + _text(value)


def _text(text: str) -> bytes:
    data = text.encode()
    # The first byte has seven bits of the length; longer texts have further bytes.
    return (bytes([len(data)]) if len(data) < 127 else b"\x7f" + _varint(len(data) - 127)) + data


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])
