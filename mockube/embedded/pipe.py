"""What a server writes bit by bit, handed to a reader in the same event loop. Knows nothing of what is written."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from aiohttp.abc import AbstractStreamWriter

if TYPE_CHECKING:
    from multidict import CIMultiDict

FULL: Final = 1 << 20
"""Bytes that may wait to be read; a writer who has more waits, and the server cuts off whom it waits for too long."""


class Pipe(AbstractStreamWriter):
    """What a `StreamResponse` writes to, instead of a socket."""

    def __init__(self) -> None:
        self.has_begun = False
        self._begun = asyncio.Event()
        self._chunks: list[bytes] = []
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._waiting = 0
        self._closed = False

    # --- the reader's end

    async def wait_begun(self) -> None:
        """Until the first of it is written, or it is closed without that."""
        await self._begun.wait()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Until it is closed, and all of it is read."""
        while True:
            await self._readable.wait()
            chunks, self._chunks, self._waiting = self._chunks, [], 0
            if not chunks:
                return
            self._writable.set()
            if not self._closed:
                self._readable.clear()
            yield b"".join(chunks)

    def give(self, whole: bytes) -> None:
        """All that will ever come."""
        self._chunks = [whole]
        self.close()

    def close(self) -> None:
        """By either end."""
        self._closed = True
        for event in (self._begun, self._readable, self._writable):
            event.set()

    # --- the writer's end

    async def write_headers(self, status_line: str, headers: "CIMultiDict[str]") -> None:  # noqa: ARG002 - aiohttp's
        self.has_begun = True
        self._begun.set()

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        await self._writable.wait()
        if self._closed:
            raise ConnectionResetError("the reader is gone")
        self._chunks.append(bytes(chunk))
        self._readable.set()
        self._waiting += len(chunk)
        if self._waiting > FULL:
            self._writable.clear()

    async def write_eof(self, chunk: bytes = b"") -> None:
        if chunk:
            await self.write(chunk)
        self.close()

    async def drain(self) -> None:
        await self._writable.wait()

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        """Nothing is saved by it here."""

    def enable_chunking(self) -> None:
        """Chunks are what they are."""
