"""The publisher: listens on this machine for what is published, and writes down where that is another port than the usual one.

kind: ConfigMap
metadata: {name: mockube-published-ports, namespace: kube-system}
data:
  address: 127.0.0.1                               what --publish-address says
  load-balancers: 127.10.0.0/16                    what --load-balancer-cidr says
  default.web.80.load-balancer: 127.10.0.1:8080    a port that could not be had, and the one in its place
"""

from datetime import timedelta
from functools import partial
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.kinds import PODS, SERVICES
from mockube.client.podview import PodView
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.component_base.open_files import allow_many_files
from mockube.component_base.supervision import run_with, start
from mockube.network.services import RouteTarget
from mockube.network.view import peer_of

from .bindings import NAME, NONE, RECORD, PublishedPort, published_ports
from .connections import Serve
from .gateways import Gateways
from .http_listeners import HttpListeners
from .ingresses import Ingresses
from .listeners import Listeners
from .record import Record
from .service_connections import ServiceConnections
from .settings import PublisherContext
from .sockets import NoSocket

REPLACED: Final = "PublishedPortReplaced"
FAILED: Final = "PublishingFailed"
_NO_PROXY: Final = "kube-proxy runs on no node, so that none has a rule for it"


class Publisher:
    def __init__(self, context: PublisherContext) -> None:
        self._context = context
        self._settings = context.settings
        self._services = context.informers.of(SERVICES)
        self._recorder = context.recorder.of(NAME)
        self._listeners = Listeners(context.clock.real)
        self._connections = ServiceConnections(context, self._listeners.connections, self._find_proxy)
        self._loop = ReconcileLoop(NAME, self._sync, workers=1, clock=context.clock, metrics=context.metrics)
        self._record = Record(context, self._loop)
        self._http = HttpListeners(context, self._listeners, self._record, self._connections)
        self._ingresses = Ingresses(context, self._http)
        self._gateways = Gateways(context, self._http)
        self._published: dict[Key, list[PublishedPort]] = {}
        self._services.add_handler(self._on_service)
        context.informers.of(PODS).add_handler(self._on_pod)

    async def run(self) -> None:
        allow_many_files()
        await self._services.wait_synced()
        self._context.view.on_other_rules(self._add_all)
        await self._context.view.wait_synced()
        await self._record.wait_synced()
        try:
            sweeping = start("idle connections", self._listeners.connections.end_idle(), endless=True)
            ingresses = start("ingresses", self._ingresses.run(), endless=True)
            gateways = start("gateways", self._gateways.run(), endless=True)
            await run_with(self._loop.run(), background_tasks=[sweeping, ingresses, gateways])
        finally:
            await self._listeners.end()

    def _find_proxy(self, target: RouteTarget) -> Serve | None:
        """Return what serves connections to a pod with a simulated controller of Ingresses: they may need TLS, and lead to processes."""
        pod = target.pod
        if pod is None or self._context.find_listener(pod, target.port, simulated=False) is not None:
            return None
        behavior = self._context.port_behavior(pod, target.port)
        if behavior is None or not behavior.ingress:
            return None
        return partial(
            self._ingresses.serve_pod,
            controller=behavior.ingress,
            peer=peer_of(pod),
            port=443 if behavior.tls else 80,
            uses_tls=bool(behavior.tls),
        )

    def _on_service(self, change: Change) -> None:
        key = Key.of(change.last_known)
        if key in self._published or (change.new is not None and self._ports_of(change.new)):
            self._loop.add(key)

    def _add_all(self) -> None:
        for service in self._services.lister.all():
            if self._ports_of(service):
                self._loop.add(Key.of(service))
        for key in self._published:
            self._loop.add(key)

    def _ports_of(self, service: ReadOnlyTree) -> list[PublishedPort]:
        settings = self._settings
        return [*published_ports(service, address=settings.address, balancers=settings.balancers)]

    def _on_pod(self, change: Change) -> None:
        """Break the connections to a pod that has ended, or whose containers have started anew."""
        old, new = change.old, change.new
        connections = self._listeners.connections
        if old is None or not connections.leads_to(old.uid):
            return
        if new is None or new.uid != old.uid or new.is_terminal or _restarts(new) != _restarts(old):
            connections.break_pod(old.uid)

    async def _sync(self, key: Key) -> timedelta | None:
        if key == RECORD:
            return await self._record.write()
        # Nodes without kube-proxy have the Services of before.
        service = self._context.view.rules_of_nodes().service(*key)
        opened = [] if service is None else self._ports_of(service)
        names = {port.key for port in opened}
        present = self._services.lister.get(*key)
        others = (
            [] if present is None else [port for port in self._ports_of(present) if port.key not in names]
        )
        for port in [*self._published.pop(key, []), *others]:
            if port.key not in names:
                self._listeners.close(port.key)
                self._record.forget(port.key)
        if opened or others:
            self._published[key] = [*opened, *others]
        for port in others:
            self._record.note(port.key, f"{NONE}{_NO_PROXY}")
        for port in opened:
            assert service is not None
            await self._open(service, port)
        return None

    async def _open(self, service: ReadOnlyTree, port: PublishedPort) -> None:
        present = self._listeners.find(port.key)
        try:
            listening = await self._listeners.open(
                port.key, port.address, port.candidates, partial(self._connections.serve, port)
            )
        except NoSocket as problem:
            if self._record.note(port.key, f"{NONE}{problem}"):
                self._recorder.record(
                    service,
                    "Warning",
                    FAILED,
                    f"{port.description} is not published on this machine: {problem}",
                )
            return
        if listening == present:
            return
        replaced = str(listening.endpoint) if listening.problem else ""
        if self._record.note(port.key, replaced) and replaced:
            text = f"{listening.problem}: {port.description} is published at {replaced} in its place"
            self._recorder.record(service, "Warning", REPLACED, text)


def _restarts(pod: PodView) -> int:
    statuses = (pod.object.get("status") or {}).get("containerStatuses") or ()
    return sum(status.get("restartCount") or 0 for status in statuses)
