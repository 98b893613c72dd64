"""Connections of programs in simulated containers to containers that run as processes of this machine."""

import asyncio
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from aiohttp import (
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from yarl import URL

from mockube.apimachinery.hosts import url_host
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout
from mockube.container_runtime import limits
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.simulated.network.calls import HttpRequest, Reply
from mockube.network.services import Outcome

_SECONDS: Final = 60.0
_REPLY_SECONDS: Final = 5.0
_DATAGRAM_SECONDS: Final = 1.0
_SKIPPED: Final = frozenset({"connection", "content-length", "transfer-encoding"})
_DECODED: Final = frozenset({"content-encoding", "transfer-encoding", "content-length"})
REFUSED: Final = Reply(outcome=Outcome.REFUSED.value)


async def connect_locally(port: ProcessPort, data: bytes, clock: Clock) -> Reply:
    """Connect to a port of a process, send data, and return what the server replies first."""
    try:
        reader, writer = await port.connect()
    except OSError:
        return REFUSED
    body = b""
    try:
        if data:
            writer.write(data)
            with suppress(OSError, TimeoutError):  # many protocols send no answer
                async with timeout(clock.real, _REPLY_SECONDS):
                    body = await reader.read(1 << 16)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return Reply(outcome=Outcome.OPEN.value, body=body)


async def send_datagram_locally(port: ProcessPort, data: bytes, clock: Clock) -> Reply:
    """Send a datagram to a port of a process in a network of its own, and return what comes back first."""
    body = b""
    try:
        opened = await port.open_own_socket(port.host, socket.SOCK_DGRAM)
        assert opened is not None
        with opened:
            opened.connect((port.host, port.port))
            opened.send(data)
            async with timeout(clock.real, _DATAGRAM_SECONDS):
                body = await asyncio.get_running_loop().sock_recv(opened, 1 << 16)
    except ConnectionRefusedError:
        return REFUSED
    except (OSError, TimeoutError):  # nothing answers, as with most datagrams of logs and metrics
        pass
    return Reply(outcome=Outcome.OPEN.value, body=body)


async def send_locally(port: ProcessPort, request: HttpRequest) -> Reply:
    """Send an HTTP request to a port of a process. Certificates are not verified: nobody knows which CA the client trusts."""
    port = port.at_listener()
    scheme = "https" if request.uses_tls else "http"
    url = URL(f"{scheme}://{url_host(port.host)}:{port.port}{request.path}", encoded=True)
    headers = [(name, value) for name, value in request.headers if name.lower() not in _SKIPPED]
    opened, uses_tls = Outcome.OPEN.value, request.uses_tls
    try:
        async with (
            ClientSession(cookie_jar=DummyCookieJar(), connector=await _connector(port)) as session,
            session.request(
                request.method,
                url,
                headers=headers,
                data=request.body or None,
                ssl=False,
                allow_redirects=False,
                timeout=ClientTimeout(total=_SECONDS),
            ) as response,
        ):
            body = await _read(response)
            return Reply(
                outcome=opened,
                uses_tls=uses_tls,
                speaks="http",
                status=response.status,
                reason=response.reason or "",
                headers=_headers(response.headers.items(), len(body)),
                body=body,
            )
    except ClientConnectorSSLError:
        return Reply(outcome=opened)
    except ClientConnectorError:
        return REFUSED
    except (ClientError, TimeoutError, OSError, ValueError):
        return Reply(outcome=opened, uses_tls=uses_tls)


async def _connector(port: ProcessPort) -> TCPConnector:
    """Return what connects to the port in its own network."""
    opened = await port.open_own_socket(port.host)
    return TCPConnector(socket_factory=None if opened is None else lambda _: opened)


async def _read(response: ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limits.MAX_LOCAL_RESPONSE:
            raise ValueError(f"the response has more than {limits.MAX_LOCAL_RESPONSE} bytes")
    return bytes(body)


def _headers(items: Iterable[tuple[str, str]], size: int) -> tuple[tuple[str, str], ...]:
    headers = [(str(name), str(value)) for name, value in items if name.lower() not in _DECODED]
    return (*headers, ("Content-Length", str(size)))
