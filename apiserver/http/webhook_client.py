"""Calls webhooks over HTTPS: limited in time and size, without redirects, and never at link-local addresses.

Clouds serve the credentials of a machine at link-local addresses, which users who can register webhooks must not read.
"""

import errno
import os
import socket
import ssl
from collections import OrderedDict
from http import HTTPStatus
from typing import Final

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    ThreadedResolver,
)
from aiohttp.abc import ResolveResult
from aiohttp.http_exceptions import TransferEncodingError
from yarl import URL

from mockube.apimachinery import gotext, ip_addresses, status
from mockube.apimachinery.status import Timeout
from mockube.apimachinery.x509.der import CertificateError
from mockube.apimachinery.x509.system_roots import trusted_pool
from mockube.apimachinery.x509.tls import VerificationError, alert_problem, client_context
from mockube.apiserver.admission.webhooks.review import WebhookCallFailed
from mockube.apiserver.admission.webhooks.services import SimulatedWebhook, WebhookEndpoint
from mockube.apiserver.request.limits import Deadlines
from mockube.apiserver.tracing import spans
from mockube.apiserver.wire.review_decode import status_message
from mockube.component_base.clock import Clock

from . import outgoing_limits
from .backend_connection import Dialer, DialFailed
from .client_span import client_span, record_status
from .named_sockets import NamedConnector, begin_request, connection_names

_CONNECTIONS: Final = 100
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "User-Agent": "kube-apiserver-admission",
}


class WebhookClient:
    """A `Caller`. Its connections belong to the event loop of its first request."""

    def __init__(self, dialer: Dialer, clock: Clock) -> None:
        """Create a client; `dialer` opens connections to pods, and `clock` is that of sockets."""
        self._dialer = dialer
        self._clock = clock
        self._deadlines = Deadlines(clock)
        self._session: ClientSession | None = None
        self._contexts: OrderedDict[bytes, ssl.SSLContext] = OrderedDict()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, endpoint: WebhookEndpoint, body: bytes, *, seconds: float) -> bytes:
        post_url = f"{endpoint.url}?timeout={seconds:.0f}s"
        with client_span("POST", post_url) as span:
            try:
                return await self._post_within(endpoint, post_url, body, seconds)
            except WebhookCallFailed as error:
                span.fail(str(error))
                raise

    async def _post_within(
        self, endpoint: WebhookEndpoint, post_url: str, body: bytes, seconds: float
    ) -> bytes:
        begin_request()
        try:
            if endpoint.pod is not None:
                return await self._deadlines.within(seconds, self._post_to_pod(endpoint, post_url, body))
            return await self._post(endpoint, post_url, body, ClientTimeout(total=seconds))
        except (TimeoutError, Timeout) as error:
            raise _call_error(post_url, "context deadline exceeded") from error
        except DialFailed as error:
            if str(error).endswith("connection refused"):
                raise SimulatedWebhook(str(_call_error(post_url, endpoint.hint))) from error
            raise _call_error(post_url, str(error)) from error
        except (ClientError, OSError, ValueError) as error:
            raise _call_error(post_url, failure_reason(error)) from error

    async def _post(
        self, endpoint: WebhookEndpoint, post_url: str, body: bytes, limit: ClientTimeout
    ) -> bytes:
        url, server_name = URL(post_url, encoded=True), None
        headers = {**_HEADERS, **spans.outgoing_headers()}
        if endpoint.connect is not None:
            host, port = endpoint.connect
            server_name, headers["Host"] = url.host, url.authority
            url = url.with_host(host).with_port(port)
        check_address(url.host or "")
        context = self._context(endpoint.authority)
        async with self._open_session().post(
            url,
            data=body,
            headers=headers,
            ssl=context,
            server_hostname=server_name,
            allow_redirects=False,
            timeout=limit,
        ) as response:
            answer = await _read(response, post_url)
        return _response_body(response.status, response.headers.get("Content-Type", ""), answer)

    async def _post_to_pod(self, endpoint: WebhookEndpoint, post_url: str, body: bytes) -> bytes:
        """Call a webhook in a pod, over a new connection: such webhooks are for tests, and need not be fast."""
        assert endpoint.pod is not None
        url, answer = URL(post_url, encoded=True), bytearray()
        async with self._dialer.dial(endpoint.pod) as connection:
            await connection.writer.start_tls(self._context(endpoint.authority), server_hostname=url.host)
            headers = {"Host": url.authority, "Content-Length": str(len(body)), "Connection": "close"}
            await connection.send_head(
                "POST", url.raw_path_qs, [*{**_HEADERS, **headers, **spans.outgoing_headers()}.items()]
            )
            connection.writer.write(body)
            await connection.drain()
            head = await connection.read_head()
            async for part in connection.body():
                answer += part
                if len(answer) > outgoing_limits.MAX_WEBHOOK_RESPONSE:
                    raise _call_error(
                        post_url, f"the response is longer than {outgoing_limits.MAX_WEBHOOK_RESPONSE} bytes"
                    )
        return _response_body(head.status, head.header("content-type"), bytes(answer))

    def _open_session(self) -> ClientSession:
        if self._session is None:
            connector = NamedConnector(resolver=CheckedResolver(), limit=_CONNECTIONS)
            self._session = ClientSession(
                connector=connector, cookie_jar=DummyCookieJar(), timeout=ClientTimeout(total=None)
            )
        return self._session

    def _context(self, authority: bytes) -> ssl.SSLContext:
        if authority in self._contexts:
            self._contexts.move_to_end(authority)
            return self._contexts[authority]
        try:
            context = client_context(trusted_pool(authority), self._clock.now)
        except CertificateError as error:
            raise WebhookCallFailed(f"could not get REST client: {error}") from error
        self._contexts[authority] = context
        if len(self._contexts) > outgoing_limits.MAX_WEBHOOK_CONTEXTS:
            self._contexts.popitem(last=False)
        return context


class CheckedResolver(ThreadedResolver):
    """Resolves host names, and refuses link-local addresses."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        results = await super().resolve(host, port, family)
        for result in results:
            check_address(result["host"])
        return results


def check_address(host: str) -> None:
    """Refuse a link-local address, such as that of a cloud's metadata. A name is resolved and checked later."""
    if ip_addresses.is_link_local(host):
        raise WebhookCallFailed(
            f"failed to call webhook: {host} is a link-local address, which is never called", 500
        )


async def _read(response: ClientResponse, post_url: str) -> bytes:
    parts, size = list[bytes](), response.content_length or 0
    if size <= outgoing_limits.MAX_WEBHOOK_RESPONSE:
        size = 0
        try:
            async for part in response.content.iter_any():
                parts.append(part)
                size += len(part)
                if size > outgoing_limits.MAX_WEBHOOK_RESPONSE:
                    break
            else:
                return b"".join(parts)
        except (ClientError, OSError) as error:
            problem = f"unexpected error when reading response body. Please retry. Original error: {_body_problem(error)}"
            raise WebhookCallFailed(f"failed to call webhook: {problem}") from error
    response.close()
    raise _call_error(post_url, f"the response is longer than {outgoing_limits.MAX_WEBHOOK_RESPONSE} bytes")


def _body_problem(error: Exception) -> str:
    """Return Go's message for a body that ends early."""
    if isinstance(error.__cause__, TransferEncodingError) and "chunk size" in str(error.__cause__):
        return "invalid byte in chunk length"
    return _lost_connection(error) or "unexpected EOF"


def _response_body(code: int, content_type: str, answer: bytes) -> bytes:
    """Return the body of a response, or raise Go's error for its code or an empty body."""
    record_status(code)
    if code < HTTPStatus.MULTIPLE_CHOICES:
        if not answer:
            problem = f"0-length response with status code: {code} and content type: {content_type}"
            raise WebhookCallFailed(f"failed to call webhook: {problem}")
        return answer
    message = status_message(answer) if code >= HTTPStatus.BAD_REQUEST else None
    if message is None:
        is_text = content_type.startswith("text/")
        text = gotext.decode_utf8(answer).strip() if is_text else "unknown"
        message = str(status.generic(code, server_message=text[: outgoing_limits.MAX_SHOWN]))
    raise WebhookCallFailed(f"failed to call webhook: {message}", code)


def _call_error(post_url: str, reason: str) -> WebhookCallFailed:
    return WebhookCallFailed(f'failed to call webhook: Post "{post_url}": {reason}')


def failure_reason(error: Exception) -> str:
    """Return Go's message for a failed connection."""
    if isinstance(error, ClientConnectorCertificateError):
        error = error.certificate_error
    if isinstance(error, VerificationError):
        return str(error)
    if reason := _lost_connection(error):
        return reason
    cause = error.os_error if isinstance(error, ClientConnectorSSLError) else error.__cause__
    if isinstance(cause, ssl.SSLError) and (alert := alert_problem(cause)):
        return alert
    if isinstance(error, ClientConnectorSSLError) and "WRONG_VERSION_NUMBER" in str(error):
        return "http: server gave HTTP response to HTTPS client"
    if isinstance(error, ssl.SSLError):
        return "tls: first record does not look like a TLS handshake"
    if isinstance(error, ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, ClientConnectorError):
        code = error.os_error.errno or 0
        reason = os.strerror(code).lower() if code > 0 else str(error.os_error)
        return f"dial tcp {error.host}:{error.port}: connect: {reason}"
    return "EOF" if isinstance(error, ServerDisconnectedError) else str(error)


def _lost_connection(error: Exception) -> str:
    """Return Go's message for a connection that the other side has reset or closed, or that is not HTTP; "" otherwise."""
    if isinstance(error, ClientResponseError):
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    for cause in (error, getattr(error, "os_error", None), error.__cause__):
        if not isinstance(cause, ConnectionResetError | BrokenPipeError):
            continue
        if cause.errno is None:
            return "EOF"  # asyncio has no error of its own for a connection that ends during the handshake
        action = "write" if cause.errno == errno.EPIPE else "read"
        names = f"{action} tcp {connection_names()}: " if connection_names() else ""
        return f"{names}{action}: {os.strerror(cause.errno).lower()}"
    return ""
