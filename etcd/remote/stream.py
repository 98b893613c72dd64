"""The streamed responses of a gateway: over a WebSocket, or as the lines of a long HTTP response.

Both return complete messages as bytes, and do not lose a message when `receive` is cancelled. Only aiohttp's small
buffers are filled before a call of `receive`, so a slow reader causes backpressure on etcd. The module is independent
of the content of messages. `connection_to` translates the errors of any connection to a member.
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol, TypeAlias

import aiohttp

from mockube.etcd.errors import Interrupted, Unavailable, Unsupported

from .errors import NotTrusted

Socket: TypeAlias = "aiohttp.ClientWebSocketResponse[Literal[False]]"


_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""The connection was not established, so the request was not sent. After any other failure it may have arrived."""


class Stream(Protocol):
    async def receive(self) -> bytes: ...

    async def send(self, message: bytes, /) -> None: ...

    async def close(self) -> None: ...


class SocketStream:
    def __init__(self, endpoint: str, socket: Socket, transport: asyncio.Transport) -> None:
        self._endpoint = endpoint
        self._socket = socket
        self._transport = transport

    async def receive(self) -> bytes:
        with connection_to(self._endpoint):
            message = await self._socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise Interrupted(f"{self._endpoint}: the stream ended")
        text: bytes = message.data
        return text

    async def send(self, message: bytes, /) -> None:
        with connection_to(self._endpoint):
            await self._socket.send_frame(message, aiohttp.WSMsgType.TEXT)

    async def close(self) -> None:
        self._transport.abort()  # a connection with TLS would wait for the peer to close it
        await self._socket.close()


class LineStream:
    def __init__(self, endpoint: str, response: aiohttp.ClientResponse, transport: asyncio.Transport) -> None:
        self._endpoint = endpoint
        self._transport = transport
        self._response = response
        self._received = bytearray()
        self._searched = 0

    async def receive(self) -> bytes:
        while (end := self._received.find(b"\n", self._searched)) < 0:
            self._searched = len(self._received)
            with connection_to(self._endpoint):
                more = await self._response.content.readany()
            if not more:
                raise Interrupted(f"{self._endpoint}: the stream ended")
            self._received += more
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        self._searched = 0
        return line

    async def send(self, _message: bytes, /) -> None:
        raise Unsupported("etcd's gateway accepts no further request on a stream opened with a token")

    async def close(self) -> None:
        self._transport.abort()
        self._response.close()


@contextmanager
def connection_to(endpoint: str) -> Iterator[None]:
    """Translate the errors of aiohttp and of the system into the store's."""
    try:
        yield
    except aiohttp.ClientSSLError as error:
        cut_short = isinstance(error.__cause__, ssl.SSLEOFError)
        raise (Unavailable if cut_short else NotTrusted)(f"{endpoint}: {error}") from error
    except _NEVER_SENT as error:
        raise Unavailable(f"{endpoint}: {error}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise Interrupted(f"{endpoint}: {str(error) or type(error).__name__}") from error
