"""HTTP byte by byte, so that requests may be malformed."""

import asyncio
import contextlib
from dataclasses import dataclass


@dataclass(frozen=True)
class RawAnswer:
    """`head` is the status line and the headers; of a stream that has no end the body is not read."""

    status: int
    head: bytes
    body: bytes = b""


def request(method, target, headers=(), body=b""):
    """Return a request as bytes, each of whose parts is taken as it is."""
    lines = [b"%s %s HTTP/1.1" % (method, target), b"Host: localhost"]
    lines += [b"%s: %s" % header for header in headers]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    if all(name != b"Connection" for name, _ in headers):
        lines.append(b"Connection: close")
    return b"\r\n".join([*lines, b"", body])


async def exchange(address, pieces, *, hangs_up=False):
    """Send the pieces one by one and read one response; None if the server only closes the connection.

    A client that closes sends no more data, so a server that waits for more can stop waiting.
    """
    reader, writer = await asyncio.open_connection(*address, limit=1 << 24)
    try:
        with contextlib.suppress(ConnectionError):  # a server may respond before it has read all
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if hangs_up:
                writer.write_eof()
        return await _answer(reader, without_body=pieces[0].startswith(b"HEAD "))
    except (ConnectionError, asyncio.IncompleteReadError):
        return None
    finally:
        writer.transport.abort()


async def _answer(reader, *, without_body):
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    length = next((int(value) for name, _, value in lines if name == b"content-length"), 0)
    return RawAnswer(status, head, b"" if without_body else await reader.readexactly(length))
