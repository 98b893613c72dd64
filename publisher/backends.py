"""Connections of a proxy to the pods behind Services, inside of this process."""

import asyncio
import ssl
from contextlib import suppress
from functools import cache
from typing import Final

from mockube.component_base import supervision
from mockube.component_base.tls_stream import TlsStream
from mockube.container_runtime.runtime import PortConnection
from mockube.container_runtime.streams import InputStream, StreamsClosed

_HANDSHAKE_FAILED: Final = 502


class PodConnection:
    """A connection to a pod: a stream for the proxy, and a `ClientConnection` for the run-time of the pod."""

    def __init__(self, connect: PortConnection) -> None:
        self.departure = asyncio.Event()
        self._to_pod, self._to_proxy = InputStream(), InputStream()
        self._serving = supervision.start("a request to a pod", self._serve(connect))

    async def _serve(self, connect: PortConnection) -> None:
        with suppress(StreamsClosed):
            await connect(_PodSide(self._to_pod, self._to_proxy, self.departure))
        await self._to_proxy.end()
        self._to_pod.discard()

    async def read(self, limit: int) -> bytes:
        return await self._to_proxy.read(limit)

    async def write(self, data: bytes) -> None:
        await self._to_pod.feed(data)

    async def end(self) -> None:
        await self._to_pod.end()

    async def close(self) -> None:
        self.departure.set()
        await self._to_pod.end()
        await supervision.cancel_and_wait([self._serving])
        self._to_proxy.discard()  # also what waits for it ends


class _PodSide:
    def __init__(self, received: InputStream, sent: InputStream, departure: asyncio.Event) -> None:
        self._received = received
        self._sent = sent
        self.departure = departure

    async def read(self, limit: int) -> bytes:
        return await self._received.read(limit)

    async def write(self, data: bytes) -> None:
        if self.departure.is_set():
            raise StreamsClosed
        await self._sent.feed(data)

    async def end(self) -> bool:
        await self._sent.end()
        return True


class TlsPodConnection:
    """The same over TLS."""

    def __init__(self, connection: PodConnection, host: str) -> None:
        self._connection = connection
        self._tls = TlsStream(connection, _unverified(), is_server=False, host=host)

    async def handshake(self) -> None:
        await self._tls.handshake()

    async def read(self, limit: int) -> bytes:
        return await self._tls.read(limit)

    async def write(self, data: bytes) -> None:
        await self._tls.write(data)

    async def end(self) -> None:
        await self._tls.end()

    async def close(self) -> None:
        await self._connection.close()


async def connect_to_pod(
    connect: PortConnection, *, uses_tls: bool, host: str
) -> PodConnection | TlsPodConnection | int:
    """Return a connection to a pod, or the status of the error if the handshake fails."""
    connection = PodConnection(connect)
    if not uses_tls:
        return connection
    secure = TlsPodConnection(connection, host)
    try:
        await secure.handshake()
    except ssl.SSLError:
        await connection.close()
        return _HANDSHAKE_FAILED
    return secure


@cache
def _unverified() -> ssl.SSLContext:
    """Return the TLS of a proxy that does not know the CA of its backends, as ingress-nginx does not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
