"""HTTP requests and streams by aiohttp, and the TLS settings that a kubeconfig asks for."""

import io
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import ClientConnectorError, ConnectionTimeoutError
from yarl import URL

from mockube.controller_manager.client import transport
from mockube.controller_manager.client.kubeconfig import Access
from mockube.controller_manager.client.wire import Answer, NoAnswer, Request, Unreachable, no_answer


def context(access: Access) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=access.authority.decode() or None)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    if access.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if access.certificate:
        _show(made, access)
    return made


def _show(made: ssl.SSLContext, access: Access) -> None:
    """OpenSSL reads certificates from files alone, so they are written where nobody else can read them."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate.write_bytes(access.certificate)
        key.write_bytes(access.key)
        made.load_cert_chain(certificate, key)


IDLE_SECONDS: Final = 30.0
"""How long a connection is kept unused: less than any server does, so that none is closed under a request."""
CONNECT_SECONDS: Final = 10.0
STREAM_BUFFER: Final = 1 << 18
LARGE: Final = 1 << 20
"""Bytes from which on aiohttp wants a body as a file."""
UNSENT: Final = frozenset({"User-Agent", "Accept-Encoding", "Content-Type"})
"""What aiohttp would say by itself. Compression costs both sides more than a local network takes."""

_KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), seconds)
        for name, seconds in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
)
"""How a watch learns that its server's machine is gone: a minute without an answer from its kernel."""


class AiohttpTransport:
    """A `Transport`. Belongs to the event loop in which it was made."""

    def __init__(self, access: Access) -> None:
        self._origin = URL(access.server)
        self._base = access.server.rstrip("/")
        self._server_name = access.server_name or None
        trust = transport.context(access) if self._origin.scheme == "https" else True
        self._requests = _session(trust=trust)
        self._streams = _session(trust=trust)

    @property
    def host(self) -> str:
        return self._origin.authority

    async def send(self, request: Request, headers: Mapping[str, str]) -> Answer:
        try:
            async with await self._open(self._requests, request, headers) as answer:
                body = await answer.read()
                return Answer(answer.status, _retry_after(answer), body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(error, request) from error

    @asynccontextmanager
    async def stream(self, request: Request, headers: Mapping[str, str]) -> AsyncIterator["_Stream"]:
        try:
            answer = await self._open(self._streams, request, headers)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(error, request) from error
        try:
            yield _Stream(answer)
        finally:
            _cut(answer)

    async def _open(
        self, session: aiohttp.ClientSession, request: Request, headers: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        body = request.body
        return await session.request(
            request.method,
            URL(self._base + request.target, encoded=True),
            data=(io.BytesIO(body) if len(body) >= LARGE else body) or None,
            headers={**request.headers, **headers},
            timeout=aiohttp.ClientTimeout(total=request.timeout, sock_connect=CONNECT_SECONDS),
            server_hostname=self._server_name,
            allow_redirects=False,
        )

    async def close(self) -> None:
        await self._requests.close()
        await self._streams.close()


def _cut(answer: aiohttp.ClientResponse) -> None:
    """End it without a farewell, which TLS would say and wait for when nobody is there any more to see it through."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.close()


class _Stream:
    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError):
            return  # who reads a stream knows by its content whether it was whole

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])


def _session(*, trust: ssl.SSLContext | bool) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            ssl=trust, limit=0, keepalive_timeout=IDLE_SECONDS, socket_factory=_socket
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=UNSENT,
        read_bufsize=STREAM_BUFFER,
        middlewares=(_once,),
    )


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    for level, option, value in _KEEP_ALIVE:
        made.setsockopt(level, option, value)
    return made


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending again by itself what may have been done already, as it does with PUT and DELETE."""
    try:
        return await handler(request)
    except aiohttp.ClientError as error:
        raise _Failed(error) from error


class _Failed(aiohttp.ClientError):
    """A request that failed; not of the classes that aiohttp tries again."""

    def __init__(self, cause: aiohttp.ClientError) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.cause = cause


def _no_answer(error: Exception, request: Request) -> NoAnswer:
    cause = error.cause if isinstance(error, _Failed) else error
    problem = str(cause) or type(cause).__name__
    if isinstance(cause, ClientConnectorError | ConnectionTimeoutError):
        return Unreachable(f"{request.method} {request.target}: {problem}")
    return no_answer(request, problem)


def _retry_after(answer: aiohttp.ClientResponse) -> float | None:
    """In seconds; the other form, a date, no API server sends."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None
