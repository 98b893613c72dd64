"""A pipe for the chunks of a response body, from a writer to a reader in the same event loop."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

MAX_BUFFERED_BYTES: Final = 1 << 20
"""With more unread bytes, writers wait until the reader has read them."""


class Pipe:
    """A `Sink` for the writer, and the methods of the reader."""

    def __init__(self) -> None:
        self.has_begun = False
        self._begin_event = asyncio.Event()
        self._chunks: list[bytes] = []
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._buffered_bytes = 0
        self._closed = False

    # --- the reader's end

    async def wait_started(self) -> None:
        """Wait until the writer has begun or the pipe is closed."""
        await self._begin_event.wait()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the written chunks until the pipe is closed and all of them are read."""
        while True:
            await self._readable.wait()
            chunks, self._chunks, self._buffered_bytes = self._chunks, [], 0
            if not chunks:
                return
            self._writable.set()
            if not self._closed:
                self._readable.clear()
            yield b"".join(chunks)

    def set_content(self, content: bytes) -> None:
        """Set the complete content and close the pipe."""
        self._chunks = [content]
        self.close()

    def close(self) -> None:
        """Close the pipe; the reader and the writer may call it."""
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
        self._buffered_bytes += sum(map(len, parts))
        if self._buffered_bytes > MAX_BUFFERED_BYTES:
            self._writable.clear()

    async def end(self) -> None:
        self.close()

    def release(self) -> None:
        """Do nothing: there are no resources but the chunks."""
