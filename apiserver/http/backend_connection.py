"""One connection to a kubelet or to a port of a pod, for one request of HTTP/1.1, which may be an upgrade."""

import asyncio
import os
import socket
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from mockube.apimachinery import ip_addresses, status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.hosts import join_host_port
from mockube.apimachinery.status import ApiError, Timeout
from mockube.apimachinery.x509.der import CertificateError
from mockube.apimachinery.x509.system_roots import trusted_pool
from mockube.apimachinery.x509.tls import VerificationError, alert_problem, client_context
from mockube.apiserver.pki.private import load_client_certificate
from mockube.apiserver.registry.subresources.locations import KubeletGateway, Location, check_address
from mockube.apiserver.request.limits import Deadlines
from mockube.component_base.clock import Clock, RealClock
from mockube.component_base.http1.heads import BadStartLine, IncompleteMessage, ProtocolError, ResponseHead
from mockube.component_base.http1.reading import END, NEED_DATA, ResponseReader, Signal
from mockube.component_base.http1.writing import InvalidHead, encode_request
from mockube.component_base.tracebacks import drop_frames

from . import outgoing_limits
from .dial_limiter import FairDialLimiter

LIMIT: Final = 64 * 1024
"""Bytes that are read ahead."""
FINISH_SECONDS: Final = 300.0
"""How long a backend may take to read the rest of what a client has sent that has left, in seconds of the real time."""
_DROPPED_SECONDS: Final = 30.0
"""How long an address may take to accept a connection, as for the proxies of kube-apiserver."""
_MACHINE: Final = "/mockube/"
"""The beginning of the paths of the machine of a node, which do not depend on its kubelet."""
_PORTS: Final = {"http": 80, "https": 443}


class DialFailed(Exception):
    """The connection failed; the message is Go's."""


class BackendLost(ConnectionError):
    """The connection was lost; the message is Go's."""

    def __init__(self, operation: str, error: OSError) -> None:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        super().__init__(f"{operation}: {reason}")


class KubeletClient(Struct, frozen=True, kw_only=True):
    """The client certificate for kubelets, and the CA of their certificates; "" if they are not verified."""

    certificate: bytes = b""
    key: bytes = b""
    authority: str = ""
    """The CA of kubelets in PEM; the client certificate and its key are in PEM, too."""
    seconds: float = 30.0
    """The timeout of a connection; 0 for none."""


async def flush(writer: asyncio.StreamWriter) -> None:
    """Wait until the other side has read so much that nothing is buffered."""
    writer.transport.set_write_buffer_limits(high=1, low=0)
    await writer.drain()


class _Ending(asyncio.Protocol):
    """Discards what is received until the end of the connection."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


class BackendConnection:
    """The bytes of a connection in both directions, with the heads and bodies of HTTP."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, socket_transport: asyncio.Transport
    ) -> None:
        """`socket_transport` is the transport below that of TLS."""
        self.reader = reader
        self.writer = writer
        self._response = ResponseReader()
        self._early_data = b""
        """What was received behind a 101 response."""
        self._socket_transport = socket_transport

    async def send_head(self, method: str, target: str, headers: Iterable[tuple[str, str]]) -> None:
        self._response = ResponseReader(method)
        if self._early_data:
            self._response.receive(self._early_data)
            self._early_data = b""
        try:
            self.writer.write(encode_request(method, target, headers))
            await self.drain()
        except InvalidHead as error:
            raise DialFailed(error.go_text) from error
        except BackendLost as error:
            raise DialFailed(str(error)) from error

    async def drain(self) -> None:
        """Wait until the backend has read enough for more to be written."""
        try:
            await self.writer.drain()
        except OSError as error:
            drop_frames(error)  # the stream keeps it
            raise BackendLost("write", error) from None

    async def read(self) -> bytes:
        """Return the next bytes of a connection that has left HTTP; none at its end."""
        early, self._early_data = self._early_data, b""
        return early or await self._receive()

    async def _receive(self) -> bytes:
        try:
            return await self.reader.read(LIMIT)
        except OSError as error:
            drop_frames(error)  # the stream keeps it
            raise BackendLost("read", error) from None

    async def finish(self) -> None:
        """Send what is buffered and the end, and discard what is received, until the backend ends, too.

        A connection that is closed with unread data is reset, and the backend may lose what it has not read. A
        transport of TLS cannot end only its sending side, so the one below does.
        """
        await flush(self.writer)
        transport, ending = self._socket_transport, _Ending()
        transport.set_protocol(ending)
        if transport.is_closing():
            return
        transport.write_eof()
        transport.resume_reading()
        with suppress(Timeout):  # the backend reads no more, and the connection is closed
            await Deadlines(RealClock()).within(FINISH_SECONDS, ending.done)

    async def read_head(self) -> ResponseHead:
        """Return the head of the response, which may follow 1xx responses."""
        try:
            while True:
                event = await self._next_event()
                if not isinstance(event, ResponseHead):
                    continue
                if event.status == HTTPStatus.SWITCHING_PROTOCOLS:
                    self._early_data = self._response.take_rest()
                    return event
                if event.status >= HTTPStatus.OK:
                    return event
        except IncompleteMessage as error:
            raise DialFailed("unexpected EOF" if error.has_begun else "EOF") from error
        except BadStartLine as error:
            raise DialFailed(f"malformed HTTP response {quote(error.line)}") from error
        except (ProtocolError, BackendLost) as error:
            raise DialFailed(str(error)) from error

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body of the response as it is received."""
        try:
            while (event := await self._next_event()) is not END:
                if isinstance(event, bytes):
                    yield event
        except IncompleteMessage as error:
            raise ConnectionError("the body ends too early") from error
        except ProtocolError as error:
            raise ConnectionError("the body is not chunked as its header states") from error

    async def _next_event(self) -> ResponseHead | bytes | Signal:
        while (event := self._response.next_event()) is NEED_DATA:
            self._response.receive(await self._receive())
        return event


async def resolve(host: str, check: Callable[[str], None]) -> str:
    """Return an address of a host whose addresses all pass a check. Connect to it: the next answer of a name server may differ."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    for address in addresses:
        check(address)
    return addresses[0]


async def _global_address(host: str) -> str:
    """Return an address of a node to which a proxy may lead, as upstream's isProxyableHostname."""
    try:
        return await resolve(host, check_address)
    except (socket.gaierror, UnicodeError) as error:
        raise status.BadRequest(f"lookup {host}: no such host") from error


async def connect(
    host: str, port: int, context: ssl.SSLContext | None, server_name: str | None
) -> BackendConnection:
    """Open a connection, over TLS if there is a context."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LIMIT, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    if context is None:
        transport, _ = await loop.create_connection(lambda: protocol, host, port)
        return BackendConnection(reader, asyncio.StreamWriter(transport, protocol, reader, loop), transport)
    below, _ = await loop.create_connection(asyncio.Protocol, host, port)
    try:
        over_tls = await loop.start_tls(below, protocol, context, server_hostname=server_name)
    except BaseException:
        below.abort()
        raise
    if over_tls is None:
        raise ConnectionResetError("the connection was lost")
    protocol.connection_made(over_tls)
    return BackendConnection(reader, asyncio.StreamWriter(over_tls, protocol, reader, loop), below)


class Dialer:
    """Opens connections to locations: directly, or through the gateway of simulated kubelets."""

    def __init__(self, kubelets: KubeletClient, clock: Clock) -> None:
        self._kubelets = kubelets
        self._clock = clock
        self._deadlines = Deadlines(clock)
        self._dial_limiter = FairDialLimiter(outgoing_limits.MAX_DIALS, clock)
        self._contexts: OrderedDict[tuple[str, bool], ssl.SSLContext] = OrderedDict()

    @asynccontextmanager
    async def dial(self, location: Location, user: str = "") -> AsyncIterator[BackendConnection]:
        connection = await self._open(location, user)
        try:
            yield connection
        finally:
            connection.writer.transport.abort()

    async def _open(self, location: Location, user: str) -> BackendConnection:
        gateway = location.gateway
        if gateway is None:
            return await self._open_directly(location, user)
        if gateway.port == 0 or ip_addresses.is_link_local(gateway.host):
            raise DialFailed(f"dial tcp {gateway.host}:{gateway.port}: the address is not allowed")
        if gateway.refusing and location.is_kubelet and not location.path.startswith(_MACHINE):
            raise DialFailed(f"dial tcp {gateway.refusing}: connect: connection refused")
        context = self._context(gateway.certificate, presents_certificate=True)
        connection = await self._connect((gateway.host, gateway.port), context, "localhost", user)
        if not location.is_kubelet:
            await self._tunnel(connection, gateway, location)
            if location.scheme == "https":
                await self._start_tls(connection)
        return connection

    async def _open_directly(self, location: Location, user: str) -> BackendConnection:
        port = int(location.port or _PORTS[location.scheme]) if _is_port(location.port) else 0
        if not port:
            raise DialFailed(f"dial tcp: lookup tcp/{location.port}: unknown port")
        host = await _global_address(location.host) if location.is_global else location.host
        context = None
        if location.scheme == "https":
            authority = (
                "" if location.skips_verification or not location.is_kubelet else self._kubelets.authority
            )
            context = self._context(authority, presents_certificate=location.is_kubelet)
        return await self._connect((host, port), context, location.host, user)

    async def _connect(
        self, address: tuple[str, int], context: ssl.SSLContext | None, server_name: str, user: str
    ) -> BackendConnection:
        """Wait for a slot of the dial limiter, and connect; the timeout begins with the slot."""
        try:
            async with self._dial_limiter.slot(address, user):
                return await self._connect_now(*address, context, server_name)
        except (TimeoutError, Timeout) as error:
            self._dial_limiter.fail(address, self._kubelets.seconds)
            raise DialFailed(f"dial tcp {join_host_port(*address)}: i/o timeout") from error

    async def _connect_now(
        self, host: str, port: int, context: ssl.SSLContext | None, server_name: str
    ) -> BackendConnection:
        opening = connect(host, port, context, server_name)
        try:
            if self._kubelets.seconds:
                return await self._deadlines.within(self._kubelets.seconds, opening)
            return await opening
        except (TimeoutError, Timeout):
            raise
        except socket.gaierror as error:
            raise DialFailed(f"dial tcp: lookup {host}: no such host") from error
        except ssl.SSLError as error:
            raise DialFailed(_tls_problem(error)) from error
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            raise DialFailed(f"dial tcp {join_host_port(host, port)}: connect: {reason}") from error

    async def _tunnel(
        self, connection: BackendConnection, gateway: KubeletGateway, location: Location
    ) -> None:
        """Request a connection to a port of a pod from the gateway."""
        port = location.port or str(_PORTS[location.scheme])
        headers = [
            ("Host", "localhost"),
            ("Mockube-Node", gateway.node),
            ("Connection", "Upgrade"),
            ("Upgrade", "tcp"),
        ]
        query = "?only=processes" if location.is_process else ""
        await connection.send_head("GET", f"/connect/{location.host}/{port}{query}", headers)
        head = await connection.read_head()
        if head.status != HTTPStatus.SWITCHING_PROTOCOLS:
            connection.writer.transport.abort()
            if head.status == HTTPStatus.GATEWAY_TIMEOUT:
                await self._clock.sleep(_DROPPED_SECONDS)  # nobody answers
                raise DialFailed(f"dial tcp {location.host}:{port}: i/o timeout")
            if head.status == HTTPStatus.BAD_GATEWAY:
                raise DialFailed(f"dial tcp {location.host}:{port}: connect: connection refused")
            raise DialFailed(
                f"dial tcp {location.host}:{port}: the kubelet returned {head.status} {head.reason.decode('utf-8', 'replace')}"
            )

    async def _start_tls(self, connection: BackendConnection) -> None:
        try:
            await connection.writer.start_tls(
                self._context("", presents_certificate=False), server_hostname="localhost"
            )
        except (OSError, ssl.SSLError) as error:
            connection.writer.transport.abort()
            raise DialFailed("tls: first record does not look like a TLS handshake") from error

    def _context(self, authority: str, *, presents_certificate: bool) -> ssl.SSLContext:
        """Return the TLS context for servers with one of these CAs or certificates; without any, servers are not verified."""
        key = (authority, presents_certificate)
        if key in self._contexts:
            self._contexts.move_to_end(key)
            return self._contexts[key]
        try:
            roots = trusted_pool(authority.encode()) if authority else None
            context = client_context(roots, self._clock.now)
            if presents_certificate and self._kubelets.certificate:
                load_client_certificate(context, self._kubelets.certificate, self._kubelets.key)
        except (CertificateError, OSError) as error:
            raise ApiError(f"the credentials for kubelets are invalid: {error}") from error
        self._contexts[key] = context
        if len(self._contexts) > outgoing_limits.MAX_BACKEND_CONTEXTS:
            self._contexts.popitem(last=False)
        return context


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal() and 0 < int(text[:6]) < 65536)


def _tls_problem(error: ssl.SSLError) -> str:
    if isinstance(error, VerificationError):
        return str(error)
    if "WRONG_VERSION_NUMBER" in str(error):
        return "tls: first record does not look like a TLS handshake"
    return alert_problem(error) or f"remote error: tls: {error.reason or error}"
