"""A connection of a pod that this process has accepted, as the `ClientConnection` of what serves it."""

import asyncio
from contextlib import suppress

from mockube.container_runtime.streams import StreamsClosed


class AcceptedConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.departure = asyncio.Event()

    async def read(self, limit: int) -> bytes:
        try:
            data = await self._reader.read(limit)
        except OSError:
            data = b""
        if not data:
            self.departure.set()
        return data

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            self.departure.set()
            raise StreamsClosed from error

    async def end(self) -> bool:
        with suppress(OSError, RuntimeError):
            self._writer.write_eof()
        return not self._reader.at_eof()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
