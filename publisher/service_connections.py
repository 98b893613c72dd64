"""Connections of clients to Services: to a ready endpoint, by kube-proxy's rules and the policies of the cluster."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.supervision import run_until
from mockube.container_runtime.runtime import PortConnection
from mockube.network.policies import is_allowed
from mockube.network.services import Outcome, Route, RouteTarget, external_route
from mockube.network.view import Peer

from . import limits
from .bindings import PublishedPort
from .connections import Connections, Serve
from .settings import PublisherContext
from .sockets import SocketConnection

_ADMIN_CHECK_SECONDS: Final = 60.0
Refusal = Outcome
"""Why a connection leads nowhere."""


class ServiceConnections:
    def __init__(
        self,
        context: PublisherContext,
        connections: Connections,
        find_proxy: Callable[[RouteTarget], Serve | None],
    ) -> None:
        """`find_proxy` returns what serves connections to a pod that runs a controller of Ingresses; None for another pod."""
        self._view = context.view
        self._find_listener = context.find_listener
        self._clock = context.clock.real
        self._connections = connections
        self._turns: Counter[tuple[str, str, int]] = Counter()
        """The number of connections to each port of a Service, which are balanced in turn."""
        self._find_proxy = find_proxy
        self._find_admin_policy = context.admin_policy
        self._admin_policy = ""
        self._admin_checked_at: float | None = None

    async def serve(self, port: PublishedPort, connection: SocketConnection) -> None:
        """Lead a client's connection to an endpoint of a Service until it ends."""
        await self._view.wait_synced()
        rules = self._view.rules_of_nodes()
        service = rules.service(port.namespace, port.service)
        service_port = port_of(service, port.port, port.name)
        if service is None or service_port is None:
            connection.reset()
            return
        client = Peer(address=connection.address)
        route = external_route(rules, client, service, service_port, is_balanced=not port.node_port)
        keeps_address = service["spec"].get("externalTrafficPolicy") == "Local"
        found = await self.find(
            route, client, (port.namespace, port.service, port.port), keeps_address=keeps_address
        )
        match found:
            case Outcome.REFUSED:
                connection.reset()
            case Outcome():
                await self.drop(connection)
            case target, connect:
                assert target.pod is not None
                self._connections.note_pod(connection, meta.uid(target.pod))
                proxy = self._find_proxy(target)
                if proxy is not None:
                    await proxy(connection)
                elif await connect(connection):
                    connection.reset()

    async def find(
        self, route: Route, client: Peer, turn: tuple[str, str, int], *, keeps_address: bool
    ) -> tuple[RouteTarget, PortConnection] | Refusal:
        """Choose an endpoint in turn; return what connects a client to it, or what happens instead.

        An endpoint that is no pod of the cluster gets no connection: its address may be one of this machine or its network.
        """
        if not route.targets:
            return route.outcome
        if await self._has_admin_policy():
            return Outcome.TIMEOUT
        targets = _with_pods(route.targets)
        if not targets:
            return Outcome.REFUSED
        number, self._turns[turn] = self._turns[turn], self._turns[turn] + 1
        for target in targets if _is_one_host(targets) else [targets[number % len(targets)]]:
            pod = target.pod
            assert pod is not None
            source = client.address if keeps_address else str(node_address(pod) or client.address)
            peer = Peer(address=source, pod=client.pod, node=client.node)
            if not is_allowed(self._view, peer, target.peer, target.port):
                return Outcome.TIMEOUT
            connect = self._find_listener(pod, target.port, source=source)
            if connect is not None:
                return target, connect
        return Outcome.REFUSED

    async def drop(self, connection: SocketConnection) -> None:
        """Answer nothing, as a network that drops packets, until the client leaves or some time has passed."""

        async def read() -> None:
            while await connection.read(1 << 14):
                pass

        await run_until(self._clock.sleep(limits.DROP_SECONDS), read())
        connection.reset()

    async def _has_admin_policy(self) -> bool:
        now = self._clock.monotonic()
        if self._admin_checked_at is None or now - self._admin_checked_at >= _ADMIN_CHECK_SECONDS:
            self._admin_checked_at = now
            self._admin_policy = await self._find_admin_policy()
        return bool(self._admin_policy)


def port_of(service: ReadOnlyTree | None, number: int | str, name: str = "") -> ReadOnlyTree | None:
    """Return the port of a Service by its number, or by its name; None if it has none."""
    ports = (service or {}).get("spec", {}).get("ports") or ()
    return next(
        (
            port
            for port in ports
            if number in (port["port"], port.get("name"))
            and (not name or name == port.get("name"))
            and (port.get("protocol") or "TCP") == "TCP"
        ),
        None,
    )


def node_address(pod: ReadOnlyTree) -> str:
    return (pod.get("status") or {}).get("hostIP") or ""


def _with_pods(targets: tuple[RouteTarget, ...]) -> list[RouteTarget]:
    return [target for target in targets if target.pod is not None and not target.is_api_server]


def _is_one_host(targets: list[RouteTarget]) -> bool:
    """Return whether all targets are in the network of a node, where one of them has the port."""
    return all(target.peer.pod is None for target in targets)
