"""Forwards requests to kubelets and pods: streams both bodies, and the bytes of upgraded connections."""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from multidict import CIMultiDict

from mockube.apimachinery import gotext, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, BadRequest
from mockube.apiserver.authn.authenticators import token_of_subprotocols
from mockube.apiserver.registry.subresources.locations import Location
from mockube.apiserver.request.request import AUTHORIZATION, SUBPROTOCOL, Frame, Request
from mockube.apiserver.request.response import Response
from mockube.component_base.clock import Clock
from mockube.component_base.http1.heads import ResponseHead

from . import exchanges, outgoing_limits, proxied_links
from .adapter import SocketClient
from .backend_connection import BackendConnection, BackendLost, Dialer, DialFailed, KubeletClient
from .exchanges import Exchanges

MESSAGE: Final = 2048
"""The maximum bytes of a log in one message of a WebSocket."""
_HOP_BY_HOP: Final = frozenset(
    [
        "connection",
        "proxy-connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_CORS: Final = frozenset(
    f"access-control-allow-{name}" for name in ("credentials", "headers", "methods", "origin")
)
_NOT_FORWARDED: Final = frozenset({AUTHORIZATION.lower(), "host", "mockube-node"})
_REPLACED: Final = frozenset(
    [
        "content-length",
        "expect",
        "x-forwarded-for",
        "x-forwarded-uri",
        "x-forwarded-host",
        "x-forwarded-proto",
    ]
)
_IMPERSONATION: Final = "impersonate-"
_LOGS: Final = GroupResource("", "pods/log")
Headers = list[tuple[str, str]]


class ReverseProxy:
    """Forwards requests, and can cancel all that are active."""

    def __init__(self, kubelets: KubeletClient, clock: Clock) -> None:
        """Create a proxy; `clock` is that of sockets."""
        self._dialer = Dialer(kubelets, clock)
        self._exchanges = Exchanges()

    def end_all(self) -> None:
        """Cancel all forwarded requests, which may be endless streams."""
        self._exchanges.end_all()

    async def stream(self, request: Request, location: Location, name: str) -> Response:
        """Forward the response of a GET request as plain text, or an error as a Status."""
        work = self._stream(request, location, name)
        try:
            return await self._exchanges.run(
                request, work, lambda: ApiError(f'Get "{_url(location)}": {exchanges.CANCELED}')
            )
        finally:
            request.is_aborted = False  # upstream ignores what ends the copy of a log

    async def forward(self, request: Request, location: Location, *, upgrade_required: bool) -> Response:
        """Forward a request; an upgrade becomes a tunnel."""
        if not isinstance(request.client, SocketClient):
            raise BadRequest("proxying needs a connection")
        if exchanges.is_upgrade(request):
            work = self._upgrade(request, location)
            return await self._exchanges.run(
                request, work, lambda: ApiError(f"error dialing backend: {exchanges.CANCELED}")
            )
        if upgrade_required:
            raise BadRequest("Upgrade request required")
        return await self._exchanges.run(request, self._forward(request, location))

    # --- logs

    async def _stream(self, request: Request, location: Location, name: str) -> Response:
        try:
            async with self._dialer.dial(location, request.user.name) as backend:
                await backend.send_head(
                    "GET", _target(location), [*_log_headers(location), ("Connection", "close")]
                )
                head = await backend.read_head()
                if not HTTPStatus.OK <= head.status <= HTTPStatus.PARTIAL_CONTENT:
                    raise await _log_error(backend, head, name)
                body = backend.body()
                if request.is_websocket:
                    return await _send_messages(request, body)
                return await exchanges.copy_body(request, Response(HTTPStatus.OK, (), "text/plain"), body)
        except DialFailed as error:
            raise ApiError(f'Get "{_url(location)}": {error}') from error

    # --- requests

    async def _forward(self, request: Request, location: Location) -> Response:
        headers = [*_forwarded_headers(request), *exchanges.framing(request)]
        try:
            async with self._dialer.dial(location, request.user.name) as backend:
                await backend.send_head(
                    request.method,
                    _target(location),
                    [
                        ("Host", request.header("Host")),
                        *_node_header(location),
                        *headers,
                        ("Connection", "close"),
                    ],
                )
                await exchanges.send_content(backend, request)
                head = await backend.read_head()
                if head.status == HTTPStatus.SWITCHING_PROTOCOLS:
                    raise ApiError(exchanges.switch_error(head.header("upgrade"), head.header("connection")))
                response = Response(
                    head.status,
                    (),
                    head.header("content-type"),
                    headers=_response_headers(head, request, location),
                )
                return await exchanges.copy_body(
                    request, response, _proxied_body(head, backend.body(), request, location)
                )
        except (BackendLost, DialFailed) as error:
            raise status.ServiceUnavailable(f"error trying to reach service: {error}") from error

    # --- upgrades

    async def _upgrade(self, request: Request, location: Location) -> Response:
        try:
            async with self._dialer.dial(location, request.user.name) as backend:
                headers = [
                    ("Host", request.header("Host")),
                    *_node_header(location),
                    *_upgrade_headers(request),
                ]
                await backend.send_head(request.method, _target(location), headers)
                await exchanges.send_content(backend, request)
                return await exchanges.switch_protocols(request, backend)
        except DialFailed as error:
            raise ApiError(f"error dialing backend: {error}") from error


async def _log_error(backend: BackendConnection, head: ResponseHead, name: str) -> ApiError:
    """Return a kubelet's error as upstream forwards it."""
    text = b""
    with suppress(ConnectionError):
        async for data in backend.body():
            text += data
            if len(text) > outgoing_limits.MAX_KUBELET_ERROR:
                break
    message = gotext.decode_utf8(text[: outgoing_limits.MAX_KUBELET_ERROR])
    if head.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return status.internal_error(message)
    if head.status == HTTPStatus.BAD_REQUEST:
        return BadRequest(message)
    return status.generic(head.status, server_message=message, resource=_LOGS, name=name)


async def _send_messages(request: Request, body: AsyncIterator[bytes]) -> Response:
    """Send a log over a WebSocket: after an empty message, messages of bytes or of base64."""
    _, client_protocols = token_of_subprotocols(request.subprotocols)
    protocol = next(
        (candidate for candidate in client_protocols or [""] if candidate in _LOG_PROTOCOLS), None
    )
    if protocol is None:
        return Response(HTTPStatus.FORBIDDEN)
    messages = request.messages(
        [protocol] if protocol else [], _LOG_PROTOCOLS[protocol], request.client.abort
    )
    return await exchanges.copy_to(request, Response(HTTPStatus.SWITCHING_PROTOCOLS), messages, _pieces(body))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_LOG_PROTOCOLS: Final[Mapping[str, Frame]] = {
    "": bytes,
    "binary.k8s.io": bytes,
    "base64.binary.k8s.io": _base64,
}


async def _pieces(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield b""
    async for data in body:
        for start in range(0, len(data), MESSAGE):
            yield data[start : start + MESSAGE]


# --- headers


def _url(location: Location) -> str:
    query = f"?{location.query}" if location.query else ""
    return f"{location.scheme}://{location.authority}{location.path}{query}"


def _target(location: Location) -> str:
    return (location.path or "/") + (f"?{location.query}" if location.query else "")


def _node_header(location: Location) -> Headers:
    """Return the header with the node's name, by which simulated kubelets share an address."""
    return [("Mockube-Node", location.gateway.node)] if location.gateway and location.is_kubelet else []


def _log_headers(location: Location) -> Headers:
    return [("Host", location.authority), *_node_header(location), ("User-Agent", "Go-http-client/1.1")]


def _own_headers(request: Request) -> Headers:
    """Return the client's headers without its credentials, and without headers that only the server may send."""
    return [
        (name, value)
        for name, value in request.headers.items()
        if name.lower() not in _NOT_FORWARDED and not name.lower().startswith(_IMPERSONATION)
    ]


def _forwarded_headers(request: Request) -> Headers:
    named = exchanges.named_in_connection(request)
    headers = [
        (name, value)
        for name, value in _own_headers(request)
        if name.lower() not in _HOP_BY_HOP and name.lower() not in named and name.lower() not in _REPLACED
    ]
    host = request.header("Host")
    return [
        *headers,
        *_forwarded_for(request),
        ("X-Forwarded-Uri", request.path),
        ("X-Forwarded-Host", host),
        ("X-Forwarded-Proto", "https"),
    ]


def _forwarded_for(request: Request) -> Headers:
    before = request.headers.getall("X-Forwarded-For", ())
    return [("X-Forwarded-For", ", ".join([*before, request.source]))]


def _upgrade_headers(request: Request) -> Headers:
    """Return the request's headers without a bearer token in a subprotocol."""
    headers = [
        (name, value)
        for name, value in _own_headers(request)
        if name.lower() not in ("x-forwarded-for", "content-length", "transfer-encoding")
    ]
    if SUBPROTOCOL in request.headers:
        _, others = token_of_subprotocols(request.subprotocols)
        headers = [(name, value) for name, value in headers if name.lower() != SUBPROTOCOL.lower()]
        headers += [(SUBPROTOCOL, ", ".join(others))] if others else []
    no_body = [("Content-Length", "0")] if request.method == "POST" else []
    return [*headers, *_forwarded_for(request), *(exchanges.framing(request) or no_body)]


def _response_headers(head: ResponseHead, request: Request, location: Location) -> CIMultiDict[str]:
    """Return the backend's headers, each as often as it was sent; a Location at the backend is rewritten to the path of the proxy."""
    headers = CIMultiDict[str]()
    for name, value in exchanges.response_headers(head).items():
        key = name.lower()
        if key in _HOP_BY_HOP or key in _CORS or key == "content-type":
            continue
        if key == "content-length" and proxied_links.has_links(head):
            continue
        headers.add(name, _rewrite_url(value, request, location) if key == "location" else value)
    return headers


def _proxied_body(
    head: ResponseHead, body: AsyncIterator[bytes], request: Request, location: Location
) -> AsyncIterator[bytes]:
    """Return the backend's body; in a page with the links that lead through the proxy."""
    if not proxied_links.has_links(head):
        return body
    encoding = head.header("content-encoding")
    return proxied_links.rewrite_links(body, encoding, lambda url: _rewrite_url(url, request, location))


def _rewrite_url(url: str, request: Request, location: Location) -> str:
    """Return a URL at the backend as one below the path of the proxy."""
    base = request.path.removesuffix(location.path) if location.path != "/" else request.path.rstrip("/")
    return proxied_links.rewrite_url(url, base, location.authority, request.header("Host"))
