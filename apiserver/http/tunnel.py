"""A client's connection taken out of HTTP: after an upgrade its bytes are only passed on."""

import asyncio
from typing import TYPE_CHECKING, Any

from mockube.apiserver.http.backend_connection import LIMIT

if TYPE_CHECKING:
    from mockube.apiserver.http.connection import Connection


class Tunnel:
    """The bytes of a client, both ways."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer


class _TunnelProtocol(asyncio.StreamReaderProtocol):
    """Passes the end of the connection on to the protocol whose place it takes."""

    def __init__(
        self, connection: "Connection", reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(reader, loop=loop)
        self._connection = connection

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connection.connection_lost(exc)


def take_over(connection: "Connection", early: bytes) -> Tunnel:
    """Take a connection out of the hands of the HTTP parser, with what it has read too far."""
    loop, transport = asyncio.get_running_loop(), connection.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has disconnected")
    reader = asyncio.StreamReader(limit=LIMIT, loop=loop)
    protocol: Any = _TunnelProtocol(connection, reader, loop)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if early:
        reader.feed_data(early)
    transport.resume_reading()
    return Tunnel(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
