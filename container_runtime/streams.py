"""The streams of one exec or attach, independent of the transport, and the Status at their end."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from . import limits

STDIN, STDOUT, STDERR, ERROR, RESIZE = 0, 1, 2, 3, 4
NAMES: Final = ("stdin", "stdout", "stderr", "error", "resize")


class StreamsClosed(Exception):
    """The client has left."""


class InputStream:
    """Bytes of a client, in order and up to their end. A feeder waits while too many of them are unread."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._position = 0
        """The number of bytes of the first chunk that were read."""
        self._unread = 0
        self._is_ended = False
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._on_arrival: Callable[[], None] = lambda: None

    def observe(self, on_arrival: Callable[[], None]) -> None:
        """Set what is called when there is more to read, or the input has ended."""
        self._on_arrival = on_arrival

    @property
    def is_ready(self) -> bool:
        """Whether a read does not wait."""
        return bool(self._chunks) or self._is_ended

    async def feed(self, data: bytes) -> None:
        while self._unread >= limits.MAX_UNREAD:
            self._writable.clear()
            await self._writable.wait()
        if data and not self._is_ended:
            self._chunks.append(data)
            self._unread += len(data)
            self._readable.set()
            self._on_arrival()

    async def end(self) -> None:
        """End the input after what was fed; what follows is dropped."""
        self._is_ended = True
        self._readable.set()
        self._on_arrival()

    def discard(self) -> None:
        """Drop what is unread and what follows, because the reader reads no more."""
        self._chunks.clear()
        self._unread, self._is_ended = 0, True
        self._readable.set()
        self._writable.set()

    async def read(self, limit: int) -> bytes:
        """Return at most `limit` bytes; b"" at the end."""
        while not self._chunks:
            if self._is_ended:
                return b""
            self._readable.clear()
            await self._readable.wait()
        chunk, start = self._chunks[0], self._position
        if len(chunk) - start <= limit:
            data = chunk[start:]
            self._chunks.popleft()
            self._position = 0
        else:
            data = chunk[start : start + limit]
            self._position = start + limit
        self._unread -= len(data)
        if self._unread < limits.MAX_UNREAD:
            self._writable.set()
        return data


class TerminalSize(Struct, frozen=True):
    width: int = msgspec.field(name="Width")
    height: int = msgspec.field(name="Height")


class TerminalSizes:
    """The size of a client's terminal. The reader gets the latest one, so that a client never waits for it."""

    def __init__(self) -> None:
        self._buffer = b""
        self._size: TerminalSize | None = None
        self._is_ended = False
        self._changed = asyncio.Event()

    async def feed(self, data: bytes) -> None:
        """Receive a part of the sizes, which are JSON objects."""
        *complete, rest = (self._buffer + data).split(b"}")
        self._buffer = rest[: limits.MAX_TERMINAL_SIZE]
        for text in complete:
            with suppress(msgspec.DecodeError):
                self._size = msgspec.json.decode(text + b"}", type=TerminalSize)
                self._changed.set()

    async def end(self) -> None:
        self._is_ended = True
        self._changed.set()

    async def next(self) -> TerminalSize | None:
        """Wait for another size; return None after the last one."""
        while self._size is None and not self._is_ended:
            self._changed.clear()
            await self._changed.wait()
        size, self._size = self._size, None
        return size


class Streams(Protocol):
    """The streams of an exec or attach."""

    stdin: InputStream | None
    sizes: TerminalSizes
    departure: asyncio.Event
    """Set when the client has left: it has closed its side, or its connection is lost. Its input has ended then."""

    async def write(self, stream: int, data: bytes) -> None:
        """Write the data; wait while the client reads too slowly; raise `StreamsClosed` if it has left."""

    async def finish(self, status: bytes) -> None:
        """Write the Status, and end all streams; without a Status the program continues and still reads its input."""


class ClientConnection(Protocol):
    """A client's connection to a port."""

    departure: asyncio.Event
    """Set when the client has left; what it sent can still be read."""

    async def read(self, limit: int) -> bytes: ...

    async def write(self, data: bytes) -> None:
        """Write the data; wait while the client does not read; raise `StreamsClosed` if it has left."""

    async def end(self) -> bool:
        """End what the client receives; return whether it can still send."""


class ProgramStreams:
    """The streams of a program that continues when its client has left, as with containerd.

    Its output is discarded then. After a limit it ends, as one that writes to a closed pipe.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._discarded = 0
        self.stdin = streams.stdin
        self.sizes = streams.sizes

    async def write(self, stream: int, data: bytes) -> None:
        try:
            await self._streams.write(stream, data)
        except StreamsClosed:
            self._discarded += len(data)
        if self._discarded > limits.MAX_DISCARDED:
            raise StreamsClosed
