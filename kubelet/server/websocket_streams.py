"""Streams over a WebSocket: each message starts with its channel's number; some protocols encode messages in base64."""

import asyncio
import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from aiohttp import WSMsgType, web

from mockube.container_runtime import streams
from mockube.container_runtime.streams import InputStream, StreamsClosed, TerminalSizes

from . import limits, statuses

PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
CLOSE: Final = 255
"""The channel with which a client of version 5 ends another channel."""
_CLOSE_SECONDS: Final = 30.0
"""How long a client may take to read the rest of the output, and to acknowledge the end."""
CLOSE_TYPES: Final = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR})


def websocket(protocols: Sequence[str]) -> web.WebSocketResponse:
    return web.WebSocketResponse(
        protocols=protocols,
        max_msg_size=limits.MAX_MESSAGE,
        compress=False,
        timeout=_CLOSE_SECONDS,
        autoclose=False,
    )


def _is_text(socket: web.WebSocketResponse) -> bool:
    return "base64" in (socket.ws_protocol or "")


def decode_message(socket: web.WebSocketResponse, data: str | bytes) -> bytes:
    """Return the channel's number and the content of a message; b"" if it is invalid."""
    if not _is_text(socket):
        return data if isinstance(data, bytes) else data.encode()
    text = data.decode("ascii", "replace") if isinstance(data, bytes) else data
    try:
        return bytes([int(text[:1])]) + base64.b64decode(text[1:])
    except ValueError:
        return b""


async def write_message(socket: web.WebSocketResponse, channel: int, data: bytes) -> None:
    try:
        if _is_text(socket):
            await socket.send_str(f"{channel}{base64.b64encode(data).decode()}")
        else:
            await socket.send_bytes(bytes([channel]) + data)
    except ConnectionError as error:
        raise StreamsClosed from error


class WebSocketStreams:
    def __init__(self, socket: web.WebSocketResponse, requested: frozenset[int]) -> None:
        """`requested` has the numbers of the streams that the client requested."""
        self._socket: web.WebSocketResponse | None = socket
        """None after the end: a command that continues does not keep its client's connection."""
        self._requested = requested
        protocol = socket.ws_protocol or ""
        self._has_status = protocol.startswith(("v4", "v5"))
        self._can_end_streams = protocol.startswith("v5")
        self.stdin = InputStream() if streams.STDIN in requested else None
        self.sizes = TerminalSizes()
        self.departure = asyncio.Event()

    async def start(self) -> None:
        """Send the empty message with which the session starts for the client."""
        lowest = min(self._requested & {streams.STDOUT, streams.STDERR, streams.ERROR}, default=streams.ERROR)
        await self.write(lowest, b"", sends_empty=True)

    async def listen(self) -> None:
        """Read messages until the client closes the socket, or sends an invalid end of a stream."""
        socket = self._socket
        assert socket is not None
        while (message := await socket.receive()).type not in CLOSE_TYPES:
            data = decode_message(socket, message.data)
            if not data:
                continue
            channel, content = data[0], data[1:]
            if channel == CLOSE and self._can_end_streams:
                if len(content) != 1 or content[0] > streams.RESIZE:
                    return
                if content[0] == streams.STDIN and self.stdin is not None:
                    await self.stdin.end()
            elif channel == streams.STDIN and self.stdin is not None:
                await self.stdin.feed(content)
            elif channel == streams.RESIZE:
                await self.sizes.feed(content)

    async def write(self, stream: int, data: bytes, *, sends_empty: bool = False) -> None:
        if (not data and not sends_empty) or (stream != streams.ERROR and stream not in self._requested):
            return
        if self._socket is None:
            raise StreamsClosed
        await write_message(self._socket, stream, data)

    async def finish(self, status: bytes) -> None:
        if status and self.stdin is not None:
            self.stdin.discard()
        with suppress(StreamsClosed):
            if status:
                await self.write(streams.ERROR, status if self._has_status else statuses.plain_status(status))
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
