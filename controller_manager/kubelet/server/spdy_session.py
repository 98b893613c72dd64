"""A SPDY/3.1 session over a connection that was upgraded: the streams that a client opens, and what it sends by them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from mockube.apimachinery import spdy
from mockube.apimachinery.spdy import ControlFrame, DataFrame, Frame, FrameReader, FrameWriter, SpdyError
from mockube.controller_manager.kubelet.server.streams import InputStream, StreamsClosed

READ: Final = 64 * 1024
PIECE: Final = 32 * 1024
"""Bytes of one frame of data."""
MAX_STREAMS: Final = 1_000
"""That are open at a time."""
REFUSED, PROTOCOL_ERROR = 3, 1


class ByteStream(Protocol):
    """What carries the session: a connection, or messages of a WebSocket."""

    async def read(self, limit: int) -> bytes: ...

    async def write(self, data: bytes) -> None:
        """Wait as long as the other side does not read."""


class SpdyStream:
    """One stream; received data is read from `received`."""

    def __init__(self, session: "SpdySession", number: int, headers: Mapping[str, str]) -> None:
        self._session = session
        self.number = number
        self.headers = headers
        self.received = InputStream()
        self.is_reset = False
        self._has_ended = False

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE):
            if self.is_reset:
                raise StreamsClosed
            await self._session.send_data(self.number, data[start : start + PIECE])

    async def end(self) -> None:
        """Nothing more is written."""
        if not self._has_ended and not self.is_reset:
            self._has_ended = True
            await self._session.send_data(self.number, b"", last=True)

    async def reset(self) -> None:
        await self._session.send_reset(self.number)


OnStream = Callable[[SpdyStream], Awaitable[None]]


class SpdySession:
    def __init__(self, carrier: ByteStream, on_stream: OnStream) -> None:
        """`on_stream` is called for each stream that the client opens, and must not wait for its data."""
        self._carrier = carrier
        self._on_stream = on_stream
        self._writer = FrameWriter()
        self._writing = asyncio.Lock()
        self._streams: dict[int, SpdyStream] = {}

    async def run(self) -> None:
        """Until the client ends the session, or sends what is no SPDY."""
        reader = FrameReader()
        try:
            while data := await self._carrier.read(READ):
                for frame in reader.feed(data):
                    if isinstance(frame, ControlFrame) and frame.type == spdy.GOAWAY:
                        return
                    await self._receive(frame)
        except SpdyError:
            with suppress(StreamsClosed):
                await self._send(self._writer.goaway(0, PROTOCOL_ERROR))
        finally:
            for stream in self._streams.values():
                stream.received.cut()

    async def _receive(self, frame: Frame) -> None:
        if isinstance(frame, DataFrame):
            stream = self._streams.get(frame.stream)
            if stream is not None:
                await stream.received.feed(frame.data)
                if frame.is_last:
                    await stream.received.end()
        elif frame.type == spdy.SYN_STREAM:
            await self._open(frame)
        elif frame.type == spdy.RST_STREAM:
            stream = self._streams.pop(frame.stream, None)
            if stream is not None:
                stream.is_reset = True
                stream.received.cut()
        elif frame.type == spdy.PING:
            await self._send(self._writer.ping(frame.value))

    async def _open(self, frame: ControlFrame) -> None:
        if len(self._streams) >= MAX_STREAMS or frame.stream in self._streams:
            await self._send(self._writer.reset(frame.stream, REFUSED))
            return
        stream = SpdyStream(self, frame.stream, frame.headers or {})
        self._streams[frame.stream] = stream
        await self._send(self._writer.syn_reply(frame.stream, {}))
        if frame.flags & spdy.FIN:
            await stream.received.end()
        await self._on_stream(stream)

    def forget(self, stream: SpdyStream) -> None:
        """Both sides are done with a stream."""
        self._streams.pop(stream.number, None)

    async def send_data(self, number: int, data: bytes, *, last: bool = False) -> None:
        await self._send(self._writer.data(number, data, last=last))

    async def send_reset(self, number: int) -> None:
        self._streams.pop(number, None)
        await self._send(self._writer.reset(number, REFUSED))

    async def _send(self, data: bytes) -> None:
        async with self._writing:
            try:
                await self._carrier.write(data)
            except ConnectionError as error:
                raise StreamsClosed from error
