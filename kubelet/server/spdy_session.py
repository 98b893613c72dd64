"""The server's side of a SPDY/3.1 session: the streams that a client opens, and their data."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from mockube.container_runtime.streams import InputStream, StreamsClosed

from . import limits, spdy
from .spdy import ControlFrame, DataFrame, Frame, FrameReader, FrameWriter, SpdyError

READ: Final = 64 * 1024
_FRAME_DATA: Final = 32 * 1024
"""The maximum bytes of a data frame that is sent, so that the streams of a session take turns."""
REFUSED, PROTOCOL_ERROR = 3, 1


class ByteStream(Protocol):
    """The transport of a session: a connection, or the messages of a WebSocket."""

    async def read(self, limit: int) -> bytes: ...

    async def write(self, data: bytes) -> None:
        """Write the data; wait while the other side does not read."""


class Receiver(Protocol):
    """What receives the data of a stream."""

    async def feed(self, data: bytes) -> None: ...

    async def end(self) -> None: ...


class SpdyStream:
    """One stream. Its data is read from `received`, unless it has another receiver."""

    def __init__(self, session: "SpdySession", number: int, headers: Mapping[str, str]) -> None:
        self._session = session
        self.number = number
        self.headers = headers
        self.received = InputStream()
        self.receiver: Receiver = self.received
        self.departure = asyncio.Event()
        """Set when the client has reset the stream, or has left the session. What it sent has ended then."""
        self._is_ended = False

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), _FRAME_DATA):
            if self.departure.is_set():
                raise StreamsClosed
            await self._session.send_data(self.number, data[start : start + _FRAME_DATA])

    async def end(self) -> None:
        """End the writing side of the stream."""
        if not self._is_ended and not self.departure.is_set():
            self._is_ended = True
            await self._session.send_data(self.number, b"", last=True)

    async def reset(self) -> None:
        await self._session.send_reset(self.number)

    async def leave(self) -> None:
        """End what the client sends and receives."""
        await self.receiver.end()
        self.departure.set()


OnStream = Callable[[SpdyStream], Awaitable[None]]


class SpdySession:
    def __init__(self, carrier: ByteStream, on_stream: OnStream) -> None:
        """`on_stream` is called for each stream that the client opens, and must not wait for its data."""
        self._carrier = carrier
        self._on_stream = on_stream
        self._writer = FrameWriter()
        self._write_lock = asyncio.Lock()
        self._streams: dict[int, SpdyStream] = {}

    async def run(self) -> None:
        """Receive frames until the client ends the session or sends invalid SPDY."""
        try:
            await self._receive_all()
        except SpdyError:
            with suppress(StreamsClosed):
                await self._send(self._writer.goaway(0, PROTOCOL_ERROR))
        for stream in self._streams.values():
            await stream.leave()

    async def _receive_all(self) -> None:
        reader = FrameReader()
        while data := await self._carrier.read(READ):
            for frame in reader.feed(data):
                if isinstance(frame, ControlFrame) and frame.type == spdy.GOAWAY and not self._streams:
                    return
                with suppress(StreamsClosed):  # what the client has sent before it left is still received
                    await self._receive(frame)

    async def _receive(self, frame: Frame) -> None:
        if isinstance(frame, DataFrame):
            stream = self._streams.get(frame.stream)
            if stream is not None:
                await stream.receiver.feed(frame.data)
                if frame.is_last:
                    await stream.receiver.end()
        elif frame.type == spdy.SYN_STREAM:
            await self._open(frame)
        elif frame.type == spdy.RST_STREAM:
            stream = self._streams.pop(frame.stream, None)
            if stream is not None:
                await stream.leave()
        elif frame.type == spdy.PING:
            await self._send(self._writer.ping(frame.value))

    async def _open(self, frame: ControlFrame) -> None:
        if len(self._streams) >= limits.MAX_STREAMS or frame.stream in self._streams:
            await self._send(self._writer.reset(frame.stream, REFUSED))
            return
        stream = SpdyStream(self, frame.stream, frame.headers or {})
        self._streams[frame.stream] = stream
        await self._send(self._writer.syn_reply(frame.stream, {}))
        await self._on_stream(stream)
        if frame.flags & spdy.FIN:
            await stream.receiver.end()

    def forget(self, stream: SpdyStream) -> None:
        """Remove a stream that both sides have ended."""
        self._streams.pop(stream.number, None)

    async def send_data(self, number: int, data: bytes, *, last: bool = False) -> None:
        await self._send(self._writer.data(number, data, last=last))

    async def send_reset(self, number: int) -> None:
        self._streams.pop(number, None)
        await self._send(self._writer.reset(number, REFUSED))

    async def _send(self, data: bytes) -> None:
        async with self._write_lock:
            try:
                await self._carrier.write(data)
            except ConnectionError as error:
                raise StreamsClosed from error
