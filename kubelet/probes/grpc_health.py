"""The gRPC call of a probe, grpc.health.v1.Health/Check, in HTTP/2 frames without compression."""

import asyncio
import struct
from collections.abc import Mapping
from typing import Final

from mockube.container_runtime.port_probe import USER_AGENT

from . import http2
from .http2 import NotHttp2, StreamEnded

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
    message = b"\x0a" + http2.varint(len(name)) + name if name else b""
    body = b"\x00" + struct.pack(">I", len(message)) + message
    await http2.send_request(writer, _headers(authority, scheme), body)
    try:
        return _status(await _read_response(reader, writer))
    except NotHttp2:
        raise GrpcError("the response is not HTTP/2") from None
    except StreamEnded:
        raise GrpcError("the server ended the call") from None


async def _read_response(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Read the response; return the bytes of its body."""
    body = bytearray()
    while True:
        kind, flags, payload = await http2.next_frame(reader, writer)
        if kind == http2.DATA:
            padding = payload[0] if flags & http2.PADDED and payload else 0
            body += payload[1 : len(payload) - padding] if flags & http2.PADDED else payload
        if len(body) > MAX_RESPONSE:
            raise GrpcError("the response is too long")
        if kind in (http2.DATA, http2.HEADERS) and flags & http2.END_STREAM:
            return bytes(body)


def _status(body: bytes) -> str:
    if len(body) < 5:
        raise GrpcError("the server does not implement the health protocol, or has no such service")
    message = body[5:]
    number = message[1] if len(message) > 1 and message[0] == 8 else 0
    return _STATUSES[number] if number < len(_STATUSES) else str(number)


def _headers(authority: str, scheme: str) -> Mapping[str, str]:
    return {
        ":method": "POST",
        ":scheme": scheme,
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
        "user-agent": USER_AGENT,
    }
