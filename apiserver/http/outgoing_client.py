"""The client of webhooks that authenticate and authorize, and of token issuers: limited in time, size and connections."""

import ssl
import tempfile
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, ThreadedResolver
from yarl import URL

from mockube.apimachinery.x509.der import CertificateError
from mockube.apimachinery.x509.system_roots import trusted_pool
from mockube.apimachinery.x509.tls import client_context
from mockube.apiserver.authn.chain import RemoteDependencies
from mockube.apiserver.authz.chain import RemoteAuthorization
from mockube.apiserver.metrics.authentication import AuthenticationMetrics
from mockube.apiserver.metrics.authorization import AuthorizationMetrics
from mockube.apiserver.outgoing import CallFailed, OutgoingDependencies, OutgoingRequest, RemoteResponse, Tls
from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry

from . import outgoing_limits
from .named_sockets import NamedConnector, begin_request
from .webhook_client import failure_reason

_CONNECTIONS: Final = 100


class OutgoingClient:
    """Sends requests; its connections belong to the event loop of its first request."""

    def __init__(self, clock: Clock) -> None:
        """Create a client; `clock` is that of sockets."""
        self._clock = clock
        self._session: ClientSession | None = None
        self._contexts: OrderedDict[Tls, ssl.SSLContext] = OrderedDict()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, request: OutgoingRequest) -> RemoteResponse:
        operation = f'{request.method.capitalize()} "{request.url}"'
        begin_request()
        try:
            return await self._send(request)
        except TimeoutError as error:
            raise CallFailed(f"{operation}: context deadline exceeded") from error
        except (ClientError, OSError, ValueError) as error:
            raise CallFailed(f"{operation}: {failure_reason(error)}") from error

    async def _send(self, request: OutgoingRequest) -> RemoteResponse:
        url = URL(request.url)
        async with self._open_session().request(
            request.method,
            url,
            data=request.body or None,
            headers=request.headers,
            ssl=self._context(request.tls) if url.scheme == "https" else True,
            server_hostname=request.tls.server_name or None,
            proxy=request.proxy or None,
            allow_redirects=request.follows_redirects,
            timeout=ClientTimeout(total=request.seconds),
        ) as response:
            body = await outgoing_limits.read_whole(response, outgoing_limits.MAX_REVIEW_RESPONSE)
            headers = {name.lower(): value for name, value in response.headers.items()}
            return RemoteResponse(
                code=response.status, reason=response.reason or "", headers=headers, body=body
            )

    def _open_session(self) -> ClientSession:
        if self._session is None:
            connector = NamedConnector(resolver=ThreadedResolver(), limit=_CONNECTIONS)
            self._session = ClientSession(
                connector=connector, cookie_jar=DummyCookieJar(), timeout=ClientTimeout(total=None)
            )
        return self._session

    def _context(self, tls: Tls) -> ssl.SSLContext:
        if tls in self._contexts:
            self._contexts.move_to_end(tls)
            return self._contexts[tls]
        context = self._contexts[tls] = tls_context(tls, self._clock)
        if len(self._contexts) > outgoing_limits.MAX_REVIEW_CONTEXTS:
            self._contexts.popitem(last=False)
        return context


def tls_context(tls: Tls, clock: Clock) -> ssl.SSLContext:
    """Return the TLS context of a client; raise CallFailed if a certificate cannot be parsed."""
    try:
        context = client_context(None if tls.insecure else trusted_pool(tls.authority), clock.now)
        if tls.certificate:
            with tempfile.NamedTemporaryFile(prefix="mockube-") as file:  # ssl loads keys from files only
                Path(file.name).write_bytes(tls.certificate + b"\n" + tls.key)
                context.load_cert_chain(file.name)
    except CertificateError as error:
        raise CallFailed(str(error)) from error
    except ssl.SSLError as error:
        raise CallFailed(f"tls: failed to parse certificates: {error}") from error
    return context


class RemoteServices:
    """The dependencies of authenticators and authorizers that call other servers.

    `server` is the identity of this server, and `sockets` the clock of connections.
    """

    def __init__(self, server: str, clock: Clock, sockets: Clock, metrics: MetricsRegistry) -> None:
        self._client = OutgoingClient(sockets)
        self.authorization = RemoteAuthorization(
            self._client.send, partial(AuthorizationMetrics, server, clock, metrics), clock
        )
        self.outbound = OutgoingDependencies(self._client.send, clock)
        self.authentication = RemoteDependencies(
            self._client.send, partial(AuthenticationMetrics, server, clock, metrics)
        )

    async def close(self) -> None:
        await self._client.close()
