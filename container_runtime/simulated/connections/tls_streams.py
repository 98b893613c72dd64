"""TLS on the stream of a client: servers of known images that have a certificate for themselves only, which no client trusts."""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from mockube.component_base.clock import Clock
from mockube.container_runtime.streams import ClientConnection

HANDSHAKE: Final = b"\x16"
"""The first byte of a TLS connection."""
_READ: Final = 16 * 1024
Result = TypeVar("Result", bytes, int)


def self_signed_context(clock: Clock) -> ssl.SSLContext:
    """Return a context with a new certificate for localhost."""
    from mockube.apimachinery.randomness import SystemRandom  # noqa: PLC0415 - for few
    from mockube.component_base.serving_certificates import self_signed_tls_context  # noqa: PLC0415

    return self_signed_tls_context("127.0.0.1", now=clock.now(), random=SystemRandom())


class UnreadStream:
    """A stream whose first bytes were read already."""

    def __init__(self, stream: ClientConnection, data: bytes) -> None:
        self._stream = stream
        self._data = data
        self.departure: asyncio.Event = stream.departure

    async def read(self, limit: int) -> bytes:
        if not self._data:
            return await self._stream.read(limit)
        data, self._data = self._data[:limit], self._data[limit:]
        return data

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)

    async def end(self) -> bool:
        return await self._stream.end()


class TlsStream:
    """What a client sends and receives within TLS. An error of the protocol ends the stream."""

    def __init__(self, stream: ClientConnection, context: ssl.SSLContext) -> None:
        self._stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.departure: asyncio.Event = stream.departure

    async def read(self, limit: int) -> bytes:
        try:
            return await self._run(partial(self._tls.read, limit))
        except ssl.SSLError:
            await self._flush()  # an alert
            return b""

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), _READ):
            piece = data[start : start + _READ]
            await self._run(partial(self._tls.write, piece))

    async def end(self) -> bool:
        return await self._stream.end()

    async def _run(self, operation: Callable[[], Result]) -> Result:
        while True:
            try:
                result = operation()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._stream.read(_READ)
                if not data:
                    raise ssl.SSLEOFError("the client has left") from None
                self._incoming.write(data)
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._stream.write(data)
