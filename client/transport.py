"""Transports: send requests over pooled connections, and streams over aiohttp, with the TLS settings of a kubeconfig.

Wrappers of a transport limit the requests in flight, and block writes after the loss of the lease.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import aiohttp
from aiohttp import ClientConnectorError, ConnectionTimeoutError
from yarl import URL

from mockube.component_base.clock import Clock
from mockube.component_base.http1.writing import encode_request

from .connections import CONNECT_SECONDS, Address, ConnectionBroken, Connections, NotConnected
from .kubeconfig import Access
from .tls import REAL_CLOCK, tls_context
from .wire import (
    ConnectTimeout,
    NoResponse,
    Request,
    Response,
    ResponseStream,
    Transport,
    Unreachable,
    no_response,
)

STREAM_BUFFER: Final = 1 << 18
SKIPPED_HEADERS: Final = frozenset({"User-Agent", "Accept-Encoding", "Content-Type"})
"""The headers that aiohttp must not add. Compression would cost both sides more than a local network."""

_KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), seconds)
        for name, seconds in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
)
"""Socket options for TCP keep-alive: a watch ends after a minute without a response from the server's machine."""


class HttpTransport:
    """The `Transport` over HTTP and HTTPS. It belongs to the event loop in which it was created."""

    def __init__(self, access: Access, clock: Clock = REAL_CLOCK) -> None:
        origin = URL(access.server)
        self._base = access.server.rstrip("/")
        self._path = origin.raw_path.rstrip("/")
        self._host = str(origin.host_port_subcomponent)
        self._server_name = access.server_name or None
        ssl_context = tls_context(access, clock) if origin.scheme == "https" else None
        self._connections = Connections(
            Address(
                host=origin.raw_host or "",
                port=origin.port or 0,
                trust=ssl_context,
                server_name=access.server_name or origin.raw_host or "",
            ),
            clock,
        )
        self._streams = _session(ssl_context=ssl_context or True)
        self.host = origin.authority
        """The host and port of the server, a label of metrics."""

    async def send(self, request: Request, headers: Mapping[str, str]) -> Response:
        encoded = self._encode(request, headers)
        try:
            response = await self._connections.exchange(
                encoded, seconds=request.timeout, is_head=request.method == "HEAD"
            )
        except NotConnected as error:
            raise Unreachable(f"{request.method} {request.target}: {error}") from error
        except (ConnectionBroken, TimeoutError) as error:
            raise no_response(request, str(error) or type(error).__name__) from error
        return Response(
            response.status, _retry_after(response.headers.get(b"retry-after", b"")), response.body
        )

    def _encode(self, request: Request, headers: Mapping[str, str]) -> bytes:
        sent = {"Host": self._host, **request.headers, **headers}
        if request.body or not request.is_read:
            sent["Content-Length"] = str(len(request.body))
        return encode_request(request.method, f"{self._path}{request.target}", sent.items(), request.body)

    @asynccontextmanager
    async def stream(self, request: Request, headers: Mapping[str, str]) -> AsyncIterator["_Stream"]:
        try:
            response = await self._streams.request(
                request.method,
                URL(self._base + request.target, encoded=True),
                headers={**request.headers, **headers},
                timeout=aiohttp.ClientTimeout(total=request.timeout, sock_connect=CONNECT_SECONDS),
                server_hostname=self._server_name,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_response_error(error, request) from error
        try:
            yield _Stream(response)
        finally:
            _abort(response)

    async def close(self) -> None:
        try:
            await self._connections.close()
        finally:
            await self._streams.close()


def _abort(response: aiohttp.ClientResponse) -> None:
    """Close a response without TLS' close_notify, because that waits for the server's."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


class _Stream:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError):
            return  # the reader has to check whether the content is complete

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])


def _session(*, ssl_context: ssl.SSLContext | bool) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=ssl_context, limit=0, force_close=True, socket_factory=_socket),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=SKIPPED_HEADERS,
        read_bufsize=STREAM_BUFFER,
    )


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = address
    connection = socket.socket(family, kind, protocol)
    for level, option, value in _KEEP_ALIVE:
        connection.setsockopt(level, option, value)
    return connection


def _no_response_error(error: Exception, request: Request) -> NoResponse:
    problem = str(error) or type(error).__name__
    if isinstance(error, ConnectionTimeoutError):
        return ConnectTimeout(f"{request.method} {request.target}: {problem}")
    if isinstance(error, ClientConnectorError):
        return Unreachable(f"{request.method} {request.target}: {problem}")
    return no_response(request, problem)


def _retry_after(text: bytes) -> float | None:
    """Return a Retry-After in seconds; API servers do not send the other form, a date."""
    return float(text) if text.isdigit() else None


MAX_IN_FLIGHT: Final = 32
"""The maximum number of requests in flight, each on its own connection: enough to use a server fully."""


class BoundedTransport:
    """A `Transport` that limits the requests in flight. Streams do not count, because they are few and long."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)

    @property
    def host(self) -> str:
        return self._transport.host

    async def send(self, request: Request, headers: Mapping[str, str]) -> Response:
        async with self._slots:
            return await self._transport.send(request, headers)

    def stream(
        self, request: Request, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ResponseStream]:
        return self._transport.stream(request, headers)

    async def close(self) -> None:
        await self._transport.close()


async def _no_wait() -> bool:
    """Do not wait for a renewal of the lease, which is lost."""
    return False


class FencedTransport:
    """A `Transport` that sends writes only while `may_write` returns true: until the lease is lost.

    `wait_until_renewed` returns true when the lease is renewed, or false if it is lost.
    """

    def __init__(
        self,
        transport: Transport,
        may_write: Callable[[], bool],
        wait_until_renewed: Callable[[], Awaitable[bool]] = _no_wait,
    ) -> None:
        self._transport = transport
        self._may_write = may_write
        self._wait_until_renewed = wait_until_renewed

    @property
    def host(self) -> str:
        return self._transport.host

    async def send(self, request: Request, headers: Mapping[str, str]) -> Response:
        if not (request.is_read or self._may_write() or await self._wait_until_renewed()):
            raise Unreachable(f"{request.method} {request.target}: the lease is lost")
        return await self._transport.send(request, headers)

    def stream(
        self, request: Request, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ResponseStream]:
        return self._transport.stream(request, headers)

    async def close(self) -> None:
        await self._transport.close()
