"""The sockets of published ports: listening on the first port that can be had, and the connections of clients."""

import asyncio
import errno
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.container_runtime.streams import StreamsClosed

from . import limits

_BACKLOG: Final = 1024
_BUFFER: Final = 64 << 10
"""What is read of a client before it has to wait, and what is unsent to it before its sender has to."""
_RESETS: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of 0: a close resets the connection."""
_ANSWER_SECONDS: Final = 0.2


class OpenedSocket(NamedTuple):
    """A listening socket, and why it does not have the first port that it could have."""

    listener: socket.socket
    problem: str


class NoSocket(Exception):
    """The process can listen on none of the ports; the message says why."""


def open_socket(address: str, ports: Sequence[int]) -> OpenedSocket:
    """Listen on the first of some ports that can be had."""
    problems = list[str]()
    for port in ports:
        try:
            return OpenedSocket(_listen(address, port), problems[0] if problems else "")
        except OSError as error:
            problems.append(_problem(error, address, port))
    raise NoSocket("; ".join(dict.fromkeys(problems)))


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if port and sys.platform != "linux" and _has_server(address, port):
        # Other systems let a socket of one address take over connections from one of all addresses.
        raise OSError(errno.EADDRINUSE, "another program listens there")
    return socket.create_server((address, port), family=family, backlog=_BACKLOG)


def _has_server(address: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((address, port), timeout=_ANSWER_SECONDS):
        return True
    return False


def _problem(error: OSError, address: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} of {address} is taken by another program"
        case errno.EACCES | errno.EPERM:
            return f"port {port} of {address} needs rights that this process does not have"
        case errno.EADDRNOTAVAIL:
            return f"{address} is no address of this machine"
        case _:
            return f"port {port} of {address}: {error.strerror}"


class SocketConnection:
    """A client's connection to a published port, as a `ClientConnection`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, clock: Clock) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self.departure = asyncio.Event()
        """Set when the connection is lost; a client that only ended what it sends still receives."""
        self.used_at = clock.monotonic()
        peer = writer.get_extra_info("peername") or ("", 0)
        self.address, self.port = str(peer[0]), int(peer[1])
        writer.transport.set_write_buffer_limits(high=_BUFFER)
        # A server that answers in several small parts must not wait for the client's acknowledgments.
        with suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def read(self, limit: int) -> bytes:
        try:
            data = await self._reader.read(limit)
        except OSError:
            self.departure.set()
            return b""
        self.used_at = self._clock.monotonic()
        return data

    async def write(self, data: bytes) -> None:
        if self.departure.is_set():
            raise StreamsClosed
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            self.departure.set()
            raise StreamsClosed from None
        self.used_at = self._clock.monotonic()

    async def end(self) -> bool:
        with suppress(OSError, RuntimeError):
            self._writer.write_eof()
        return True

    async def close(self) -> None:
        """Send what is unsent, and close the connection; reset it if the client does not read in time."""
        self._writer.close()
        try:
            async with supervision.timeout(self._clock, limits.RESPONSE_SECONDS):
                await self._writer.wait_closed()
        except TimeoutError:
            self.reset()
        except OSError:
            pass

    def reset(self) -> None:
        """Break the connection, as the kernel does when nothing listens or a program was killed."""
        connection = self._writer.get_extra_info("socket")
        with suppress(OSError, AttributeError, ValueError):  # it may be closed
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
        self._writer.transport.abort()
        self.departure.set()


class _Protocol(asyncio.StreamReaderProtocol):
    """A connection whose loss is noticed at once, also while nobody reads."""

    def __init__(self, clock: Clock, on_connection: Callable[[SocketConnection], None]) -> None:
        self._clock = clock
        self._on_connection = on_connection
        self._connection: SocketConnection | None = None
        super().__init__(asyncio.StreamReader(limit=_BUFFER), self._connected)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connection = SocketConnection(reader, writer, self._clock)
        self._on_connection(self._connection)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._connection is not None:
            self._connection.departure.set()


async def accept(
    listener: socket.socket, clock: Clock, on_connection: Callable[[SocketConnection], None]
) -> asyncio.Server:
    """Call the function with each connection to a socket until the returned server is closed."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: _Protocol(clock, on_connection), sock=listener, backlog=_BACKLOG)
