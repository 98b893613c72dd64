"""The streams of exec and attach over SPDY: the client opens each stream, with its type in a header."""

import asyncio
from contextlib import suppress
from typing import Final

from mockube.container_runtime import streams
from mockube.container_runtime.streams import InputStream, StreamsClosed, TerminalSizes

from . import statuses
from .spdy_session import SpdyStream

PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)


class SpdyStreams:
    def __init__(self, requested: frozenset[int], protocol: str) -> None:
        self._missing = set(requested | {streams.ERROR})
        if protocol in ("v2.channel.k8s.io", "channel.k8s.io"):
            self._missing.discard(streams.RESIZE)
        self._has_status = protocol[:2] in ("v4", "v5")
        self._streams: dict[int, SpdyStream] = {}
        self.complete = asyncio.Event()
        """Set when the client has opened all requested streams, or has taken too long."""
        self.is_timed_out = False
        self.stdin: InputStream | None = None
        self.sizes = TerminalSizes()
        self.departure = asyncio.Event()

    def time_out(self) -> None:
        """Stop waiting for streams: the client has taken too long."""
        self.is_timed_out = not self.complete.is_set()
        self.complete.set()

    async def add(self, stream: SpdyStream) -> None:
        name = stream.headers.get("streamtype", "")
        number = streams.NAMES.index(name) if name in streams.NAMES else -1
        if number not in self._missing:
            await stream.reset()
            return
        self._missing.discard(number)
        self._streams[number] = stream
        if number == streams.STDIN:
            self.stdin = stream.received
        elif number == streams.RESIZE:
            stream.receiver = self.sizes
        else:
            stream.received.discard()
        if not self._missing:
            self.complete.set()

    async def write(self, stream: int, data: bytes) -> None:
        spdy_stream = self._streams.get(stream)
        if spdy_stream is not None:
            await spdy_stream.write(data)

    async def finish(self, status: bytes) -> None:
        if status and self.stdin is not None:
            self.stdin.discard()
        with suppress(StreamsClosed):
            if status:
                await self.write(streams.ERROR, status if self._has_status else statuses.plain_status(status))
            for stream in self._streams.values():
                await stream.end()
