"""The two ports of Ingresses and Gateways, which are open while there are any, and the connections to them."""

import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from mockube.component_base.http1.heads import ProtocolError
from mockube.component_base.supervision import timeout
from mockube.component_base.tls_stream import TlsStream
from mockube.network.services import Outcome, Route, endpoints
from mockube.network.view import Peer

from .backends import PodConnection, TlsPodConnection, connect_to_pod
from .bindings import HTTP, HTTPS, NONE, Endpoint, candidates
from .certificates import server_context
from .http_proxy import HttpProxy
from .http_routing import FixedAnswer, Forward, HttpRouter, ProxiedRequest
from .listeners import Listeners
from .record import Record
from .service_connections import ServiceConnections, port_of
from .settings import PublisherContext
from .sockets import NoSocket, SocketConnection

_HANDSHAKE_SECONDS: Final = 10.0
_UNAVAILABLE: Final = 503
_REFUSED: Final = 502
_DROPPED: Final = 504
ChooseContext = Callable[[str], ssl.SSLContext | None]
"""Returns the TLS for the name that a client sends; None for the fake certificate."""


class SeveralRouters:
    """Asks some routers in turn: the first one that has a rule for a request decides."""

    def __init__(self, routers: Sequence[HttpRouter]) -> None:
        self._routers = routers

    def decide(self, request: ProxiedRequest) -> FixedAnswer | Forward:
        answer: FixedAnswer | Forward = FixedAnswer(status=404)
        for router in reversed(self._routers):
            decision = router.decide(request)
            is_missing = isinstance(decision, FixedAnswer) and decision.status == 404
            if not is_missing:
                return decision
            answer = decision
        return answer

    def error_body(self, status: int) -> bytes:
        return self._routers[0].error_body(status)


class HttpListeners:
    def __init__(
        self,
        context: PublisherContext,
        listeners: Listeners,
        record: Record,
        services: ServiceConnections,
    ) -> None:
        self._context = context
        self._clock = context.clock.real
        self._listeners = listeners
        self._record = record
        self._services = services
        self._users = set[str]()
        self._routers: list[HttpRouter] = []
        self._choosers: list[ChooseContext] = []
        self._tls: ssl.SSLContext | None = None

    def add_router(self, router: HttpRouter, choose: ChooseContext) -> None:
        self._routers.append(router)
        self._choosers.append(choose)

    def endpoint(self, *, uses_tls: bool) -> Endpoint | None:
        """Return where one of the ports is; None if it is closed."""
        listening = self._listeners.find(HTTPS if uses_tls else HTTP)
        return None if listening is None else listening.endpoint

    async def use(self, user: str) -> str:
        """Open the ports for a user, unless they are open; return why they are not the usual ones."""
        self._users.add(user)
        settings, problems = self._context.settings, []
        router = SeveralRouters(self._routers)
        for name, port in ((HTTP, settings.http_port), (HTTPS, settings.https_port)):
            serve = partial(self._serve, router, uses_tls=name == HTTPS)
            try:
                listening = await self._listeners.open(name, settings.address, candidates(port), serve)
            except NoSocket as problem:
                problems.append(str(problem))
                self._record.note(name, f"{NONE}{problem}")
            else:
                self._record.note(name, str(listening.endpoint))
                if listening.problem:
                    problems.append(f"{listening.problem}: {name.upper()} is served at {listening.endpoint}")
        return "; ".join(problems)

    def release(self, user: str) -> None:
        """Close the ports after their last user."""
        self._users.discard(user)
        for name in () if self._users else (HTTP, HTTPS):
            self._listeners.close(name)
            self._record.forget(name)

    async def _serve(self, router: HttpRouter, connection: SocketConnection, *, uses_tls: bool) -> None:
        peer = Peer(address=connection.address)
        endpoint = self.endpoint(uses_tls=uses_tls)
        port = endpoint.port if endpoint is not None else 0
        await self.serve(router, connection, peer, port, uses_tls=uses_tls)

    async def serve(
        self, router: HttpRouter, connection: SocketConnection, peer: Peer, port: int, *, uses_tls: bool
    ) -> None:
        """Serve the requests of a client; `peer` is what policies see of the proxy."""
        stream: SocketConnection | TlsStream = connection
        if uses_tls:
            stream = tls = TlsStream(connection, self._tls_context(), is_server=True)
            try:
                async with timeout(self._clock, _HANDSHAKE_SECONDS):
                    await tls.handshake()
            except (ssl.SSLError, TimeoutError):
                return
        head = self._listeners.connections.head_of(connection)
        proxy = HttpProxy(stream, router, partial(self._open_backend, peer), self._clock, head)
        with suppress(ProtocolError):
            await proxy.serve(connection.address, port, uses_tls=uses_tls)
        if isinstance(stream, TlsStream):
            await stream.end()

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            context = self._context
            self._tls = server_context(self._choose, context.clock.now(), context.random)
        return self._tls

    def _choose(self, host: str) -> ssl.SSLContext | None:
        return next((found for choose in self._choosers if (found := choose(host)) is not None), None)

    async def _open_backend(self, peer: Peer, forward: Forward) -> PodConnection | TlsPodConnection | int:
        """Connect to an endpoint of a Service; an alias is none, since its host may be one of this machine's network."""
        view = self._context.view
        await view.wait_synced()
        namespace, name, number = forward.backend
        service = view.service(namespace, name)
        service_port = port_of(service, number)
        if service is None or service_port is None or service["spec"].get("type") == "ExternalName":
            return _UNAVAILABLE
        route = Route(targets=tuple(endpoints(view, service, service_port)))
        if not route.targets:
            return _UNAVAILABLE
        turn = (namespace, name, service_port["port"])
        found = await self._services.find(route, peer, turn, keeps_address=peer.pod is not None)
        if isinstance(found, Outcome):
            return _DROPPED if found is Outcome.TIMEOUT else _REFUSED
        _, connect = found
        return await connect_to_pod(connect, uses_tls=forward.uses_tls, host=name)
