"""How the frames of a watch reach a client: one after another in a long answer, or each as a message of a WebSocket."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from aiohttp import hdrs, web

from mockube.apimachinery import status
from mockube.apiserver.authn.credentials import token_of_subprotocols
from mockube.apiserver.http.response import PIECE
from mockube.apiserver.wire.negotiation import Format, Wanted

LENGTH_BYTES = 4
"""What a frame of protobuf begins with in a long answer: a message says itself how long it is."""
MAX_MESSAGE = 4096
"""Of a client, which has nothing to say."""
UNDRAINED_BYTES = 64 * 1024
"""How much may be written, such as pongs, before the client has to read."""
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
    if is_websocket(request):
        return _Messages(request, wanted.format, on_closed)
    return _Chunks(request, wanted)


def is_websocket(request: web.BaseRequest) -> bool:
    if request.headers.get(hdrs.UPGRADE, "").lower() != "websocket":
        return False
    connection = request.headers.get(hdrs.CONNECTION, "").lower()
    return "upgrade" in {word.strip() for word in connection.split(",")}


def subprotocols(request: web.BaseRequest) -> list[str]:
    """Return the subprotocols that a client offers."""
    offered = request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, [])
    return [protocol for line in offered for part in line.split(",") if (protocol := part.strip())]


def _chosen(request: web.BaseRequest) -> Sequence[str]:
    """Return the subprotocol of a watch: as upstream, the only one that is offered beside a token, whatever it is."""
    _, others = token_of_subprotocols(subprotocols(request))
    if len(others) > 1:
        raise status.BadRequest("a watch takes one subprotocol beside that of a bearer token")
    return others


class _Chunks:
    def __init__(self, request: web.BaseRequest, wanted: Wanted) -> None:
        headers = {hdrs.CONTENT_TYPE: _content_type(wanted), hdrs.CACHE_CONTROL: "no-cache, private"}
        self._request = request
        self.response = web.StreamResponse(headers=headers)

    async def begin(self) -> None:
        await self.response.prepare(self._request)

    async def write(self, frames: Sequence[bytes]) -> None:
        whole = frames[0] if len(frames) == 1 else b"".join(frames)
        if len(whole) <= 2 * PIECE:
            await self.response.write(whole)
            return
        for start in range(0, len(whole), PIECE):  # each is copied several times on its way
            await self.response.write(memoryview(whole)[start : start + PIECE])

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
            protocols=_chosen(request),
            max_msg_size=MAX_MESSAGE,
            writer_limit=UNDRAINED_BYTES,
            compress=False,
            timeout=FAREWELL_SECONDS,
        )
        self.response: web.StreamResponse = self._socket

    async def begin(self) -> None:
        try:
            await self._socket.prepare(self._request)
        except web.HTTPBadRequest as error:
            raise status.BadRequest(error.text or error.reason) from error
        self._listening = asyncio.create_task(self._listen(), name="the client of a watch")

    async def _listen(self) -> None:
        try:
            with suppress(ConnectionError):  # a pong that cannot be sent
                async for _ in self._socket:
                    pass
        finally:  # also where the client has sent what cannot be read
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
