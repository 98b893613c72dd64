"""The client of one member's JSON gateway. The transport chooses the member and decides whether to retry."""

import asyncio
import socket
import ssl
from http import HTTPStatus
from io import BytesIO
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from mockube.etcd.errors import Interrupted

from .errors import error_of_answer
from .requests import Method
from .stream import LineStream, SocketStream, Stream, connection_to

T = TypeVar("T")

NEEDS_LEADER = {"Grpc-Metadata-hasleader": "true"}
"""The option by which a member without a leader refuses a request at once, before it is executed, instead of waiting."""

LARGE = 2**20
"""The size from which aiohttp expects a body as a file, which it sends in pieces."""

KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""A stream may be silent for long; these options detect a vanished peer, on systems that have them."""


def is_endpoint(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


class Gateway:
    """One member, by its client URL."""

    def __init__(self, endpoint: str, *, tls: ssl.SSLContext | None, connect_timeout: float) -> None:
        url = urlsplit(endpoint)
        host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
        self.endpoint = endpoint
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls or True), headers=NEEDS_LEADER
        )
        # Every etcd since 3.4 serves these calls at the same path.
        self._base = f"{url.scheme}://{host}:{url.port or 2379}/v3"
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_timeout)

    @property
    def token(self) -> str | None:
        return self._session.headers.get("Authorization")

    @token.setter
    def token(self, token: str) -> None:
        self._session.headers["Authorization"] = token

    async def call(self, method: Method[T], body: bytes) -> T:
        with connection_to(self.endpoint):
            async with await self._post(method.path, body) as answer:
                payload = await answer.read()
        if answer.status != HTTPStatus.OK:
            raise error_of_answer(payload, answer.status)
        try:
            return method.decode(payload)
        except msgspec.MsgspecError as error:
            raise Interrupted(f"{self.endpoint}: invalid response: {error}") from error

    async def open_stream(self, path: str, body: bytes) -> Stream:
        """Begin a call whose responses are a stream.

        Only over a WebSocket does etcd's gateway read further requests while it responds. It accepts no token there:
        its proxy passes one on as `Bearer …`, which etcd does not recognize.
        """
        with connection_to(self.endpoint):
            if self.token is None:
                return await self._open_socket(path, body)
            return await self._open_lines(path, body)

    async def close(self) -> None:
        await self._session.close()

    async def _open_socket(self, path: str, body: bytes) -> SocketStream:
        answer = await self._session.ws_connect(self._base + path, max_msg_size=0, decode_text=False)
        # A WebSocket has no public attribute for its transport.
        stream = SocketStream(self.endpoint, answer, _keep_alive(answer._response))  # noqa: SLF001
        try:
            await stream.send(body)
        except BaseException:
            await stream.close()
            raise
        return stream

    async def _open_lines(self, path: str, body: bytes) -> LineStream:
        answer = await self._post(path, body)
        if answer.status != HTTPStatus.OK:
            raise error_of_answer(await answer.read(), answer.status)
        return LineStream(self.endpoint, answer, _keep_alive(answer))

    async def _post(self, path: str, body: bytes) -> aiohttp.ClientResponse:
        return await self._session.post(
            self._base + path,
            data=body if len(body) < LARGE else BytesIO(body),
            timeout=self._timeout,
        )


def _keep_alive(answer: aiohttp.ClientResponse) -> asyncio.Transport:
    """Return the transport of a streaming response, set to detect a vanished peer."""
    assert answer.connection is not None
    transport = answer.connection.transport
    assert transport is not None
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return transport
