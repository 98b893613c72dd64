"""How the frames of a watch reach a client: one after another in a long answer, or each as a message of a WebSocket."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from aiohttp import hdrs, web

from apimachinery import status
from apiserver.wire.negotiate import Format, Wanted

LENGTH_BYTES = 4
"""What a frame of protobuf begins with in a long answer: a message says itself how long it is."""
MAX_MESSAGE = 4096
"""Of a client, which has nothing to say."""
FAREWELL_SECONDS = 2.0
"""How long a client may take to answer that the watch has ended."""


class Sink(Protocol):
    response: web.StreamResponse

    async def begin(self) -> None: ...

    async def write(self, frames: Sequence[bytes]) -> None: ...

    async def end(self) -> None: ...

    def release(self) -> None:
        """Leave nothing behind, however it came to the end."""


def sink(request: web.BaseRequest, wanted: Wanted, *, on_closed: Callable[[], None]) -> Sink:
    """`on_closed` is called if the client says that it wants no more."""
    if _asks_for_a_socket(request):
        return _Messages(request, wanted.format, on_closed)
    return _Chunks(request, wanted)


def _asks_for_a_socket(request: web.BaseRequest) -> bool:
    if request.headers.get(hdrs.UPGRADE, "").lower() != "websocket":
        return False
    connection = request.headers.get(hdrs.CONNECTION, "").lower()
    return "upgrade" in {word.strip() for word in connection.split(",")}


class _Chunks:
    def __init__(self, request: web.BaseRequest, wanted: Wanted) -> None:
        headers = {hdrs.CONTENT_TYPE: _content_type(wanted), hdrs.CACHE_CONTROL: "no-cache, private"}
        self._request = request
        self.response = web.StreamResponse(headers=headers)

    async def begin(self) -> None:
        await self.response.prepare(self._request)

    async def write(self, frames: Sequence[bytes]) -> None:
        await self.response.write(b"".join(frames))

    async def end(self) -> None:
        await self.response.write_eof()

    def release(self) -> None:
        """There is nothing but the answer."""


class _Messages:
    """Text where the format is text. What the client sends is read, as its pings and its farewell are among it."""

    def __init__(self, request: web.BaseRequest, written: Format, on_closed: Callable[[], None]) -> None:
        self._request = request
        self._format = written
        self._on_closed = on_closed
        self._listening: asyncio.Task[None] | None = None
        self._socket = web.WebSocketResponse(
            max_msg_size=MAX_MESSAGE, compress=False, timeout=FAREWELL_SECONDS
        )
        self.response: web.StreamResponse = self._socket

    async def begin(self) -> None:
        try:
            await self._socket.prepare(self._request)
        except web.HTTPBadRequest as error:
            raise status.BadRequest(error.text or error.reason) from error
        self._listening = asyncio.create_task(self._listen(), name="the client of a watch")

    async def _listen(self) -> None:
        async for _ in self._socket:
            pass
        self._on_closed()

    async def write(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            if self._format is Format.PROTOBUF:
                await self._socket.send_bytes(frame[LENGTH_BYTES:])
            else:
                await self._socket.send_str(frame.decode())

    async def end(self) -> None:
        await self._socket.close()

    def release(self) -> None:
        if self._listening is not None:
            self._listening.cancel()


def _content_type(wanted: Wanted) -> str:
    if wanted.format is Format.JSON:
        return wanted.format.value
    return f"{wanted.format.value};stream=watch"
