"""Connections within this process: bytes flow both ways between a simulated program and what it is connected to."""

import asyncio
from collections.abc import Callable
from typing import Final

from mockube.container_runtime.streams import StreamsClosed

_MAX_UNREAD: Final = 1 << 20


class Flow:
    """The bytes of one direction: the sender ends it, the receiver may leave it."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._changed = asyncio.Event()
        self._observers: list[Callable[[], None]] = []
        self.is_ended = False
        self.is_left = False

    def observe(self, on_change: Callable[[], None]) -> None:
        self._observers.append(on_change)

    def _note(self) -> None:
        self._changed.set()
        for on_change in self._observers:
            on_change()

    @property
    def has_room(self) -> bool:
        return self.is_left or len(self._data) < _MAX_UNREAD

    @property
    def is_over(self) -> bool:
        """Whether all was received, and nothing follows."""
        return self.is_ended and not self._data

    def put(self, data: bytes) -> None:
        if data and not self.is_ended and not self.is_left:
            self._data += data
            self._note()

    def end(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self._note()

    def leave(self) -> None:
        if not self.is_left:
            self.is_left = True
            self._data.clear()
            self._note()

    def take(self, limit: int) -> bytes:
        """Return what is there, at most `limit` bytes."""
        data = bytes(self._data[:limit])
        del self._data[:limit]
        if data:
            self._note()
        return data

    async def read(self, limit: int) -> bytes:
        """Wait for bytes; return b"" at the end."""
        while not self._data and not self.is_ended and not self.is_left:
            await self.change()
        return self.take(limit)

    async def write(self, data: bytes) -> None:
        """Wait for room; raise `StreamsClosed` if the receiver has left."""
        while not self.has_room:
            await self.change()
        if self.is_left:
            raise StreamsClosed
        self.put(data)

    async def change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class FlowClient:
    """The client of a connection as its server sees it; it implements `ClientConnection`."""

    def __init__(self, sent: Flow, received: Flow) -> None:
        self._sent = sent
        self._received = received
        self.departure = asyncio.Event()
        received.observe(self._note_departure)

    def _note_departure(self) -> None:
        if self._received.is_left:
            self.departure.set()

    async def read(self, limit: int) -> bytes:
        return await self._sent.read(limit)

    async def write(self, data: bytes) -> None:
        await self._received.write(data)

    async def end(self) -> bool:
        self._received.end()
        return False


class ProgramConnection:
    """The end of a connection that a simulated program has."""

    def __init__(self, incoming: Flow, outgoing: Flow, notify: Callable[[], None]) -> None:
        """`notify` is called when something has arrived, or may be sent."""
        self.incoming = incoming
        self.outgoing = outgoing
        incoming.observe(notify)
        outgoing.observe(notify)

    def close(self) -> None:
        self.incoming.leave()
        self.outgoing.end()
