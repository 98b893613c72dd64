"""Forwards requests to aggregated API servers, with the user in headers and a client certificate.

Bodies are streamed, so that watches work; redirects are not followed, and link-local addresses are never called.
"""

import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, quote_plus

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar
from multidict import CIMultiDict
from yarl import URL

from mockube.apimachinery import status
from mockube.apimachinery.hosts import join_host_port
from mockube.apimachinery.status import Timeout
from mockube.apimachinery.x509.der import CertificateError
from mockube.apimachinery.x509.system_roots import trusted_pool
from mockube.apimachinery.x509.tls import VerificationError, alert_problem, client_context
from mockube.apiserver.aggregation.availability import ServerUnreachable
from mockube.apiserver.aggregation.remotes import RemoteAPIService
from mockube.apiserver.authn.authenticators import token_of_subprotocols
from mockube.apiserver.pki.issue import Pair
from mockube.apiserver.pki.private import load_client_certificate
from mockube.apiserver.registry.subresources.locations import Location
from mockube.apiserver.request.limits import Deadlines
from mockube.apiserver.request.request import SUBPROTOCOL, Request
from mockube.apiserver.request.response import NOT_CACHED, Response, text_response
from mockube.apiserver.tracing import spans
from mockube.apiserver.user import User
from mockube.component_base.clock import RealClock
from mockube.component_base.http1 import heads, requests

from . import exchanges, outgoing_limits
from .adapter import SocketClient
from .backend_connection import BackendConnection, Dialer, DialFailed, connect, resolve
from .client_span import client_span, record_status
from .exchanges import Exchanges
from .named_sockets import NamedConnector, begin_request
from .webhook_client import CheckedResolver, check_address, failure_reason

_MAX_BUFFERED: Final = 1 << 20
"""Bytes of a body that is read before it is forwarded; a longer body is streamed."""
_MAX_BODY: Final = 16 << 20
"""Bytes of the body of a request from this process."""
CHECK_SECONDS: Final = 5.0
CONNECT_SECONDS: Final = 30.0
_REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HOP_BY_HOP: Final = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_NOT_FORWARDED: Final = _HOP_BY_HOP | {"authorization", "content-length", "expect", "host", "audit-id"}
_NOT_RETURNED: Final = _HOP_BY_HOP | {"content-type", "date", "server", "audit-id"}
_USER_PREFIXES: Final = ("x-remote-", "impersonate-")

Address: TypeAlias = tuple[str, int] | Location
"""Host and port, or the port of a pod whose container is a process."""
Resolve = Callable[[RemoteAPIService], Address]
"""Returns the address of a server, or raises `ServerUnreachable`."""


class Fetched(NamedTuple):
    """A response of another server."""

    url: str
    code: int
    headers: Mapping[str, str]
    data: bytes


class ServiceProxy:
    """Forwards requests to API servers; its connections belong to the event loop of its first request."""

    def __init__(self, resolve: Resolve, certificate: Pair | None, dialer: Dialer) -> None:
        """Create a proxy; `dialer` opens connections to pods."""
        self._resolve = resolve
        self._dialer = dialer
        self._certificate = certificate
        self._contexts: dict[tuple[bytes, bool], ssl.SSLContext] = {}
        self._sessions: dict[tuple[bytes, bool, bool], ClientSession] = {}
        self._exchanges = Exchanges()
        self._clock = RealClock()  # of sockets
        self._deadlines = Deadlines(self._clock)
        self._streams: set[ClientResponse] = set()

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    def end_all(self) -> None:
        """Cancel all forwarded requests, which may be endless streams."""
        self._exchanges.end_all()
        for stream in list(self._streams):
            stream.close()

    async def forward(self, remote: RemoteAPIService, request: Request) -> Response:
        """Return the response of another server; a long one is written before the return."""
        if not remote.is_available:
            return text_response("service unavailable\n", HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            self._context(remote)
            address = self._resolve(remote)
        except CertificateError as error:
            return text_response(f"{error}\n", HTTPStatus.INTERNAL_SERVER_ERROR)
        except ServerUnreachable:
            return text_response("service unavailable\n", HTTPStatus.SERVICE_UNAVAILABLE)
        path, _, query = request.uri.partition("?")
        target = f"{path}{_sorted_query(request) if query else ''}"
        is_upgrade = exchanges.is_upgrade(request) and requests.protocols(request.header("Upgrade"))
        if is_upgrade and isinstance(request.client, SocketClient):
            return await self._exchanges.run(request, self._upgrade(remote, request, address, target))
        with client_span(request.method, f"https://{_authority(address)}{target}"):
            # aiohttp's client writes methods in upper case, so that another method than the authorized one would be forwarded.
            if isinstance(address, Location) or not request.method.isupper():
                forwarding = self._forward_alone(remote, request, address, target)
                return await self._exchanges.run(request, forwarding)
            return await self._forward_to_address(remote, request, address, target)

    async def _forward_to_address(
        self, remote: RemoteAPIService, request: Request, address: tuple[str, int], target: str
    ) -> Response:
        check_address(address[0])
        headers = _traced_headers(request, _authority(address))
        url = URL(f"https://{_authority(address)}{target}", encoded=True)
        body, is_streamed = await _body(request, headers)
        begin_request()
        try:
            response = await self._session(remote, is_streamed=is_streamed).request(
                request.method, url, data=body, headers=headers, allow_redirects=False,
                server_hostname=remote.host,
            )  # fmt: skip
        except (ClientError, OSError, TimeoutError, ValueError) as error:
            reason = failure_reason(error)
            return text_response(f"error trying to reach service: {reason}\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return await self._response_of(request, response)

    async def _forward_alone(
        self, remote: RemoteAPIService, request: Request, address: Address, target: str
    ) -> Response:
        """Forward a request over a new connection."""
        host = _authority(address)
        headers = _traced_headers(request, host)
        body, _ = await _body(request, headers)
        if isinstance(body, bytes):
            headers["Content-Length"] = str(len(body))
        elif body is not None and "Content-Length" not in headers:
            headers["Transfer-Encoding"] = "chunked"
        try:
            async with self._connect(remote, address) as backend:
                await backend.send_head(request.method, target, [("Host", host), *headers.items()])
                await exchanges.send_body(backend, body, is_chunked="Transfer-Encoding" in headers)
                head = await backend.read_head()
                record_status(head.status)
                if refusal := _refusal(head.status, head.header("upgrade"), head.header("connection")):
                    return refusal
                returned = _returned_headers(exchanges.response_headers(head))
                response = Response(head.status, (), head.header("content-type"), headers=returned)
                return await exchanges.copy_body(request, response, backend.body())
        except (OSError, DialFailed) as error:
            reason = f"error trying to reach service: {error}\n"
            return text_response(reason, HTTPStatus.SERVICE_UNAVAILABLE)

    async def _upgrade(
        self, remote: RemoteAPIService, request: Request, address: Address, target: str
    ) -> Response:
        """Forward an upgrade request, over a new connection that becomes a tunnel."""
        host = _authority(address)
        headers = _forwarded_headers(request, host)
        _add_upgrade(headers, request)
        headers.extend(exchanges.framing(request))
        try:
            async with self._connect(remote, address) as backend:
                await backend.send_head(request.method, target, [("Host", host), *headers.items()])
                await exchanges.send_content(backend, request)
                return await exchanges.switch_protocols(request, backend)
        except (OSError, DialFailed, Timeout) as error:
            reason = _dial_problem(error, host) if isinstance(error, OSError) else error
            raise status.internal_error(f"error dialing backend: {reason}") from error

    @asynccontextmanager
    async def _connect(self, remote: RemoteAPIService, address: Address) -> AsyncIterator[BackendConnection]:
        context = self._context(remote)
        if isinstance(address, Location):
            async with self._dialer.dial(address) as connection:
                await connection.writer.start_tls(context, server_hostname=remote.host)
                yield connection
            return
        host, port = address
        opening = connect(await resolve(host, check_address), port, context, remote.host)
        connection = await self._deadlines.within(CONNECT_SECONDS, opening)
        try:
            yield connection
        finally:
            connection.writer.transport.abort()

    async def _response_of(self, request: Request, service_response: ClientResponse) -> Response:
        record_status(service_response.status)
        received = service_response.headers
        upgrade, connection = received.get("Upgrade", ""), received.get("Connection", "")
        if refusal := _refusal(service_response.status, upgrade, connection):
            service_response.close()
            return refusal
        headers = _returned_headers(received)
        content_type = received.get("Content-Type", "")
        response = Response(service_response.status, (), content_type, headers=headers)
        self._streams.add(service_response)
        request.client.on_lost(service_response.close)
        try:
            sink = request.stream(response)
            await sink.begin()
            async for part in service_response.content.iter_any():
                await sink.write([part])
            await sink.end()
        except (ClientError, ConnectionError):
            request.is_aborted = True
        finally:
            request.client.on_lost(None)
            self._streams.discard(service_response)
            service_response.close()
        return response

    async def fetch(
        self, remote: RemoteAPIService, path: str, user: User, headers: Mapping[str, str]
    ) -> Fetched:
        """Get a document of a server, or raise `ServerUnreachable`."""
        address = self._resolve(remote)
        url = f"https://{_authority(address)}{path}"
        sent = CIMultiDict([*headers.items(), *_user_headers(user).items()])
        begin_request()
        try:
            if isinstance(address, Location):
                from_pod = self._fetch_from_pod(remote, address, path, sent)
                return await self._deadlines.within(CHECK_SECONDS, from_pod)
            check_address(address[0])
            async with self._session(remote).get(
                URL(url, encoded=True), headers=sent, allow_redirects=False, server_hostname=remote.host,
                timeout=ClientTimeout(total=CHECK_SECONDS),
            ) as response:  # fmt: skip
                return Fetched(
                    url,
                    response.status,
                    response.headers,
                    await outgoing_limits.read_whole(response, outgoing_limits.MAX_DOCUMENT),
                )
        except (ClientError, DialFailed, OSError, TimeoutError, Timeout, ValueError) as error:
            reason = failure_reason(error)
            if isinstance(error, (TimeoutError, Timeout)):
                reason = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            problem = f'failing or missing response from {url}: Get "{url}": {reason}'
            raise ServerUnreachable(problem) from error

    async def _fetch_from_pod(
        self, remote: RemoteAPIService, pod: Location, path: str, headers: CIMultiDict[str]
    ) -> Fetched:
        data = bytearray()
        async with self._connect(remote, pod) as backend:
            own = {"Host": pod.authority, "Connection": "close"}
            await backend.send_head("GET", path, [*own.items(), *headers.items()])
            head = await backend.read_head()
            async for part in backend.body():
                data += part
                if len(data) > outgoing_limits.MAX_DOCUMENT:
                    raise ValueError(f"the response is longer than {outgoing_limits.MAX_DOCUMENT} bytes")
        returned = CIMultiDict(heads.pairs(head))
        return Fetched(f"https://{pod.authority}{path}", head.status, returned, bytes(data))

    def _session(self, remote: RemoteAPIService, *, is_streamed: bool = False) -> ClientSession:
        """Return the session for servers with the same CA.

        A streamed body cannot be sent again, so it is never sent over a connection that was used before.
        """
        key = remote.authority, remote.is_insecure, is_streamed
        if key not in self._sessions:
            context = self._context(remote)
            self._sessions[key] = ClientSession(
                connector=NamedConnector(resolver=CheckedResolver(), ssl=context, force_close=is_streamed),
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                auto_decompress=False,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            )
        return self._sessions[key]

    def _context(self, remote: RemoteAPIService) -> ssl.SSLContext:
        """Return the TLS context for servers with this CA; raise CertificateError if it is invalid."""
        key = remote.authority, remote.is_insecure
        if key in self._contexts:
            return self._contexts[key]
        roots = None if remote.is_insecure else trusted_pool(remote.authority)
        context = self._contexts[key] = client_context(roots, self._clock.now)
        if self._certificate is not None:
            load_client_certificate(context, self._certificate.certificate, self._certificate.key)
        return context


def _traced_headers(request: Request, authority: str) -> CIMultiDict[str]:
    """Return the headers that are forwarded, with those of the trace of this server."""
    headers = _forwarded_headers(request, authority)
    headers.update(spans.outgoing_headers())
    return headers


def _add_upgrade(headers: CIMultiDict[str], request: Request) -> None:
    """Add what asks for another protocol. HTTP/2 is none: over it, a client could send requests with the headers of other users."""
    headers["Connection"] = "Upgrade"
    headers["Upgrade"] = requests.protocols(request.header("Upgrade"))
    if SUBPROTOCOL in request.headers:
        _, others = token_of_subprotocols(request.subprotocols)
        headers[SUBPROTOCOL] = ", ".join(others)


def _refusal(code: int, upgrade: str, connection: str) -> Response | None:
    """Return the error for a response that is not forwarded; None for all others."""
    if (
        code in _REDIRECTS
    ):  # as upstream (RejectForwardingRedirects): a client would send its credentials there
        return Response(HTTPStatus.BAD_GATEWAY, [_REDIRECTED.encode()], "text/plain; charset=utf-8")
    if code == HTTPStatus.SWITCHING_PROTOCOLS:
        problem = exchanges.switch_error(upgrade, connection)
        return text_response(f"{problem}\n", HTTPStatus.SERVICE_UNAVAILABLE)
    return None


def _returned_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers of another server's response that are sent to the client."""
    returned = CIMultiDict(pair for pair in headers.items() if pair[0].lower() not in _NOT_RETURNED)
    for name, value in NOT_CACHED.items():
        returned.setdefault(name, value)
    return returned


def _authority(address: Address) -> str:
    if isinstance(address, Location):
        return address.authority
    return join_host_port(*address)


async def _body(
    request: Request, headers: CIMultiDict[str]
) -> tuple[bytes | AsyncIterator[bytes] | None, bool]:
    """Return a body and whether it is streamed; a small one is read completely."""
    client, length = request.client, request.header("Content-Length")
    if not client.has_body:
        return None, False
    is_small = length.isascii() and length.isdecimal() and len(length) < 10 and int(length) <= _MAX_BUFFERED
    if is_small or not isinstance(client, SocketClient):
        return await client.read(_MAX_BODY) or None, False
    if length:
        headers["Content-Length"] = length
    return client.content(), True


def _dial_problem(error: OSError, host: str) -> str:
    if isinstance(error, VerificationError):
        return str(error)
    if isinstance(error, ssl.SSLError):
        return alert_problem(error) or f"remote error: tls: {error.reason or error}"
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"dial tcp {host}: connect: {reason}"


def _sorted_query(request: Request) -> str:
    """Return the query as Go encodes it: sorted by name."""
    pairs = sorted(request.query.items())
    return "?" + "&".join(
        f"{quote_plus(name)}={quote_plus(value)}" for name, values in pairs for value in values
    )


def _forwarded_headers(request: Request, host: str) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    not_forwarded = _NOT_FORWARDED | exchanges.named_in_connection(request)
    for name, value in request.headers.items():
        lowered = name.lower()
        if lowered not in not_forwarded and not lowered.startswith(_USER_PREFIXES):
            headers.add(name, value)
    before = headers.popall("X-Forwarded-For", [])
    headers["X-Forwarded-For"] = ", ".join([*before, request.source] if request.source else before)
    headers["X-Forwarded-Host"] = host
    headers["X-Forwarded-Proto"] = "https"
    headers["X-Forwarded-Uri"] = request.path
    headers["Audit-Id"] = request.audit_id
    headers.extend(_user_headers(request.user))
    return headers


def _user_headers(user: User) -> CIMultiDict[str]:
    """Return the request header identity of a request's user, for a server that trusts this one."""
    headers: CIMultiDict[str] = CIMultiDict({"X-Remote-User": user.name})
    if user.uid:
        headers["X-Remote-Uid"] = user.uid
    for group in user.groups:
        headers.add("X-Remote-Group", group)
    for name, values in user.extra.items():
        for value in values:
            headers.add(f"X-Remote-Extra-{quote(name, safe='')}", value)
    return headers
