"""Streams over a WebSocket: each message starts with its channel's number; some protocols encode messages in base64."""

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from aiohttp import WSMsgType, web

from mockube.controller_manager.kubelet.server.streams import (
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    InputStream,
    StreamsClosed,
    plain_status,
)

PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
CLOSE: Final = 255
"""The channel with which a client of version 5 ends another channel."""
MAX_MESSAGE: Final = 4 << 20
_CLOSE_SECONDS: Final = 2.0
CLOSE_TYPES: Final = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR})


def websocket(protocols: Sequence[str]) -> web.WebSocketResponse:
    return web.WebSocketResponse(
        protocols=protocols, max_msg_size=MAX_MESSAGE, compress=False, timeout=_CLOSE_SECONDS, autoclose=False
    )


class WebSocketStreams:
    def __init__(self, socket: web.WebSocketResponse, requested: frozenset[int]) -> None:
        """`requested` has the numbers of the streams that the client requested."""
        self._socket = socket
        self._requested = requested
        protocol = socket.ws_protocol or ""
        self._is_text = "base64" in protocol
        self._has_status = protocol.startswith(("v4", "v5"))
        self.stdin = InputStream() if STDIN in requested else None
        self.resize = InputStream()

    async def start(self) -> None:
        """Send the empty message with which the session starts for the client."""
        lowest = min(self._requested & {STDOUT, STDERR, ERROR}, default=ERROR)
        await self.write(lowest, b"", sends_empty=True)

    async def listen(self) -> None:
        """Read messages until the client has closed the socket."""
        try:
            while (message := await self._socket.receive()).type not in CLOSE_TYPES:
                data = self._decode(message.data)
                if data[:1] == bytes([CLOSE]):
                    if data[1:2] == bytes([STDIN]) and self.stdin is not None:
                        await self.stdin.end()
                elif data[:1] == bytes([STDIN]) and self.stdin is not None:
                    await self.stdin.feed(data[1:])
                elif data[:1] == bytes([RESIZE]):
                    self.resize.feed_nowait(data[1:])
        finally:
            if self.stdin is not None:
                self.stdin.abort()

    def _decode(self, data: str | bytes) -> bytes:
        if not self._is_text:
            return data if isinstance(data, bytes) else data.encode()
        text = data.decode("ascii", "replace") if isinstance(data, bytes) else data
        try:
            return bytes([int(text[:1])]) + base64.b64decode(text[1:])
        except ValueError:
            return b""

    async def write(self, stream: int, data: bytes, *, sends_empty: bool = False) -> None:
        if not data and not sends_empty:
            return
        try:
            if self._is_text:
                await self._socket.send_str(f"{stream}{base64.b64encode(data).decode()}")
            else:
                await self._socket.send_bytes(bytes([stream]) + data)
        except ConnectionError as error:
            raise StreamsClosed from error

    async def finish(self, status: bytes) -> None:
        with suppress(StreamsClosed):
            await self.write(ERROR, status if self._has_status else plain_status(status))
        await self._socket.close()
