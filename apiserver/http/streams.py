"""Streamed bodies: in a chunked response, or each part as a message of a WebSocket."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import orjson
from aiohttp import hdrs, web
from aiohttp.http import StreamWriter
from multidict import CIMultiDict

from mockube.apimachinery import status
from mockube.apiserver.request.response import (
    PIECE,
    Response,
    compress_and_flush,
    fit_warnings,
    stream_compressor,
)
from mockube.component_base.http1.writing import encode_chunk
from mockube.component_base.tracebacks import drop_frames

from .connection import Connection

LOG = logging.getLogger(__name__)

MAX_MESSAGE = 4096
"""Bytes of a client's message; clients of a watch have nothing to send."""
UNDRAINED_BYTES = 64 * 1024
"""Bytes, such as pongs, that are written before the client has to read."""
CLOSE_SECONDS = 2.0
"""How long a client may take to acknowledge the end of a watch."""


class Chunks:
    """A `Sink` for the body of a response."""

    def __init__(
        self,
        connection: Connection,
        request: web.BaseRequest,
        response: Response,
        added: Mapping[str, str],
    ) -> None:
        headers = CIMultiDict({hdrs.CONTENT_TYPE: response.content_type})
        headers.extend(response.headers)
        headers.update(added)
        self._connection = connection
        self._request = request
        self._is_chunked = False
        self._compressor = stream_compressor() if response.compressed else None
        if response.compressed:
            headers.update({hdrs.CONTENT_ENCODING: "gzip", hdrs.VARY: hdrs.ACCEPT_ENCODING})
        self.response: web.StreamResponse = web.StreamResponse(status=response.status, headers=headers)
        for text in fit_warnings(response.warnings) if response.warnings else ():
            self.response.headers.add(hdrs.WARNING, f"299 - {orjson.dumps(text).decode()}")
        self.has_ended = False

    async def begin(self) -> None:
        writer = await self.response.prepare(self._request)
        self._is_chunked = isinstance(writer, StreamWriter) and writer.chunked

    async def write(self, parts: Sequence[bytes]) -> None:
        """Write the parts as one chunk, or large ones as several, because a chunk is copied several times until it is sent.

        A compressed body is flushed after the parts: a client must not wait for an event that was sent.
        """
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        if self._compressor is not None:
            data = await compress_and_flush(self._compressor, data)
        if len(data) <= 2 * PIECE:
            await self._write_pieces((data,))
        else:
            view = memoryview(data)
            await self._write_pieces([view[start : start + PIECE] for start in range(0, len(data), PIECE)])

    async def _write_pieces(self, pieces: Sequence[bytes | memoryview]) -> None:
        connection = self._connection
        for piece in pieces:
            if not self._is_chunked or not piece:
                await self.response.write(piece)
                continue
            # aiohttp's writer takes several times as long.
            connection.send(encode_chunk(piece))
            if connection.writing_paused:
                await connection.drain()

    async def end(self) -> None:
        if self._compressor is not None:
            await self._write_pieces((self._compressor.flush(),))
        await self.response.write_eof()
        self.has_ended = True

    def release(self) -> None:
        """Do nothing: a response has no messages to release."""


class Messages:
    """A `Sink` for a WebSocket: `frame` returns the message of each part, text or bytes.

    Messages of the client are read, since they include pings and close frames.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        protocols: Sequence[str],
        frame: Callable[[bytes], str | bytes],
        on_closed: Callable[[], None],
    ) -> None:
        self._request = request
        self._frame = frame
        self._on_closed = on_closed
        self._is_ending = False
        self._listening: asyncio.Task[None] | None = None
        self._socket = web.WebSocketResponse(
            protocols=protocols,
            max_msg_size=MAX_MESSAGE,
            writer_limit=UNDRAINED_BYTES,
            compress=False,
            timeout=CLOSE_SECONDS,
        )
        self.response: web.StreamResponse = self._socket
        self.has_ended = False

    async def begin(self) -> None:
        try:
            await self._socket.prepare(self._request)
        except web.HTTPBadRequest as error:
            raise status.BadRequest(error.text or error.reason) from error
        self._listening = asyncio.create_task(self._listen(), name="read the client of a watch")

    async def _listen(self) -> None:
        try:
            with suppress(ConnectionError):  # a pong that cannot be sent
                async for _ in self._socket:
                    pass
        except Exception:
            LOG.exception("a client of a watch cannot be read")
        finally:  # also after a message that cannot be read
            if not self._is_ending:
                self._on_closed()

    async def write(self, parts: Sequence[bytes]) -> None:
        for part in parts:
            message = self._frame(part)
            if isinstance(message, str):
                await self._socket.send_str(message)
            else:
                await self._socket.send_bytes(message)

    async def end(self) -> None:
        self._is_ending = True
        await self._socket.close()
        self.has_ended = True

    def release(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        if (error := self._socket.exception()) is not None:
            drop_frames(error)
