"""The output of a running container, for all attached clients. A slow client stops the container, as a full pipe does."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

OUTPUT_END: Final = (0, b"")
MAX_UNREAD: Final = 256 << 10
"""The bytes that a client has not read yet after which the container has to wait."""
MAX_REST: Final = 1 << 20
"""The same after the container's end: pipes and buffers have less."""

Piece = tuple[int, bytes]


class AttachedOutput:
    """The output for one client: pieces with their stream's number, up to `OUTPUT_END`."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self._is_closed = False
        self._added = asyncio.Event()
        self.unread = 0
        self.progress = asyncio.Event()

    async def get(self) -> Piece:
        while not self._pieces:
            self._added.clear()
            await self._added.wait()
        piece = self._pieces.popleft()
        self.unread -= len(piece[1])
        self.progress.set()
        return piece

    def add(self, piece: Piece) -> None:
        if not self._is_closed:
            self._pieces.append(piece)
            self.unread += len(piece[1])
            self._added.set()

    def close(self) -> None:
        """Drop the output, because the client has left."""
        self._is_closed, self.unread = True, 0
        self.progress.set()


class ContainerOutput:
    def __init__(self) -> None:
        self._clients: set[AttachedOutput] = set()
        self._limit = MAX_UNREAD

    @contextmanager
    def listen(self) -> Iterator[AttachedOutput]:
        """Queue the output from now on."""
        output = AttachedOutput()
        self._clients.add(output)
        try:
            yield output
        finally:
            self._clients.discard(output)
            output.close()

    async def send(self, stream: int, data: bytes) -> None:
        """Queue a piece for all clients; wait while one of them has too much unread."""
        for client in tuple(self._clients):  # clients come and leave while it waits for one
            while client.unread >= self._limit:
                client.progress.clear()
                await client.progress.wait()
            client.add((stream, data))

    def release(self) -> None:
        """Let the rest of the output be queued after the end of the container's process."""
        self._limit = MAX_REST
        for client in self._clients:
            client.progress.set()

    def end(self) -> None:
        for client in self._clients:
            client.add(OUTPUT_END)
