"""A body that is written in pieces to a reader in the same event loop. Independent of its content."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

FULL: Final = 1 << 20
"""Bytes that may wait to be read; a writer that has more waits until they are."""


class Pipe:
    """A `Sink` and its reader's end."""

    def __init__(self) -> None:
        self.has_begun = False
        self._begin_event = asyncio.Event()
        self._chunks: list[bytes] = []
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._waiting = 0
        self._closed = False

    # --- the reader's end

    async def wait_started(self) -> None:
        """Wait until the writer has begun or the pipe is closed."""
        await self._begin_event.wait()

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

    def set_content(self, content: bytes) -> None:
        """Set the complete content."""
        self._chunks = [content]
        self.close()

    def close(self) -> None:
        """By either end."""
        self._closed = True
        for event in (self._begin_event, self._readable, self._writable):
            event.set()

    # --- the writer's end

    async def begin(self) -> None:
        self.has_begun = True
        self._begin_event.set()

    async def write(self, parts: Sequence[bytes]) -> None:
        await self._writable.wait()
        if self._closed:
            raise ConnectionResetError("the reader has closed")
        self._chunks += parts
        self._readable.set()
        self._waiting += sum(map(len, parts))
        if self._waiting > FULL:
            self._writable.clear()

    async def end(self) -> None:
        self.close()

    def release(self) -> None:
        """There is nothing but the chunks."""
