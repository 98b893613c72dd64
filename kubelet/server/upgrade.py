"""A connection hijacked from HTTP after an upgrade to SPDY or to plain bytes."""

import asyncio

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from mockube.component_base.http1.writing import encode_response
from mockube.container_runtime.streams import StreamsClosed

from .spdy_session import READ


class UpgradedConnection:
    """The hijacked connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.departure = asyncio.Event()

    async def read(self, limit: int) -> bytes:
        data = await self._reader.read(limit)
        if not data:  # over TLS a client cannot end only what it sends
            self.departure.set()
        return data

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError as error:
            raise StreamsClosed from error

    async def end(self) -> bool:
        return False

    async def close(self) -> None:
        self._writer.close()


class UpgradedResponse(web.StreamResponse):
    """The response object of an upgraded request, for which aiohttp writes nothing."""

    def __init__(self) -> None:
        super().__init__(status=101)
        self.force_close()

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the stream has no HTTP body."""


class _Protocol(asyncio.StreamReaderProtocol):
    """Forwards the end of the connection to the protocol that it replaces."""

    def __init__(
        self,
        replaced_protocol: asyncio.Protocol,
        reader: asyncio.StreamReader,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(reader, loop=loop)
        self._replaced_protocol = replaced_protocol

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None)  # with an error, the reader would lose what it has not read
        self._replaced_protocol.connection_lost(exc)


def upgrade(request: web.BaseRequest, headers: dict[str, str]) -> UpgradedConnection:
    """Send 101 with these headers and return the hijacked connection."""
    loop, transport = asyncio.get_running_loop(), request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has disconnected")
    transport.write(encode_response(101, {"Connection": "Upgrade", **headers}.items()))
    reader = asyncio.StreamReader(limit=READ, loop=loop)
    protocol = _Protocol(request.protocol, reader, loop)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    transport.resume_reading()
    return UpgradedConnection(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
