"""The Gateways and HTTPRoutes that this machine serves, once their definitions are installed: routes, certificates, status."""

import asyncio
import ssl
from datetime import timedelta
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.informer import Informer
from mockube.client.cache.store import Change
from mockube.client.kinds import CUSTOM_RESOURCE_DEFINITIONS, SECRETS, SERVICES
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key, Resource
from mockube.component_base.supervision import run_all

from .certificates import Certificate, certificate_of
from .gateway_attachment import (
    Cluster,
    Parent,
    ReferenceProblem,
    class_status,
    gateway_status,
    is_granted,
    not_permitted,
    parents_of,
    route_status,
)
from .gateway_kinds import GATEWAY_CLASSES, GATEWAYS, GRANTS, GROUP, HTTP_ROUTES, REFERENCE_GRANTS
from .gateway_routing import GatewayRouter, Listener, MatchTable, shared_host
from .http_listeners import HttpListeners
from .settings import PublisherContext

CONTROLLER: Final = "mockube.dev/gateway-controller"
CONTROLLERS: Final = frozenset(
    {
        CONTROLLER,
        "example.com/gateway-controller",
        "gateway.envoyproxy.io/gatewayclass-controller",
        "gateway.nginx.org/nginx-gateway-controller",
        "istio.io/gateway-controller",
        "io.cilium/gateway-controller",
        "konghq.com/kic-gateway-controller",
        "projectcontour.io/gateway-controller",
        "traefik.io/gateway-controller",
    }
)
"""The controllers whose Gateways are served: mockube's own, that of the documentation, and those that do not run here."""
_USER: Final = "gateway"
_BAD_CERTIFICATE: Final = "InvalidCertificateRef"
_READY: Final = ("gateways", "httproutes", "gatewayclasses")


class Gateways:
    def __init__(self, context: PublisherContext, http: HttpListeners) -> None:
        self._context = context
        self._http = http
        self._address = context.settings.address
        self._definitions = context.informers.of(CUSTOM_RESOURCE_DEFINITIONS)
        self._is_installed = asyncio.Event()
        self._served = set[Key]()
        """The Gateways that are served."""
        self._table = MatchTable()
        self._parents: dict[Key, list[Parent]] = {}
        """What became of the references of each route."""
        self._routes_of: dict[Key, set[Key]] = {}
        """The routes that refer to each Gateway."""
        self._users: dict[Key, set[Key]] = {}
        """The routes that refer to each Service."""
        self._certificates: dict[Key, list[tuple[str, Certificate]]] = {}
        """The certificates of each Gateway, with the hosts of their listeners."""
        self._unserved = set[Listener]()
        """The listeners that have no certificate."""
        self._grants: Informer[ReadOnlyTree] | None = None
        self._gateway_loop = ReconcileLoop(
            "gateway-publisher", self._sync_gateway, workers=1, clock=context.clock, metrics=context.metrics
        )
        self._route_loop = ReconcileLoop(
            "route-publisher", self._sync_route, workers=1, clock=context.clock, metrics=context.metrics
        )
        self._definitions.add_handler(self._on_definition)

        def random(limit: int) -> int:
            return int.from_bytes(context.random.bytes(4)) % limit

        http.add_router(GatewayRouter(self._table, random, self._unserved), self._choose)

    def _on_definition(self, _: Change) -> None:
        if all("v1" in self._versions(plural) for plural in _READY):
            self._is_installed.set()

    def _versions(self, plural: str) -> list[str]:
        """Return the served versions of a kind; none before its definition is established."""
        definition = self._definitions.lister.get("", f"{plural}.{GROUP}") or {}
        versions = (definition.get("spec") or {}).get("versions") or ()
        is_established = conditions.is_true(definition, "Established")
        return [each["name"] for each in versions if each.get("served")] if is_established else []

    async def run(self) -> None:
        await self._is_installed.wait()
        of = self._context.informers.of
        self._gateways, self._routes, self._classes = of(GATEWAYS), of(HTTP_ROUTES), of(GATEWAY_CLASSES)
        versions = self._versions(GRANTS)
        grants = next((row for version, row in REFERENCE_GRANTS.items() if version in versions), None)
        if grants is not None:
            self._grants = of(grants)
            await self._grants.wait_synced()
            self._grants.add_handler(self._on_shared_change)
        for informer in (self._gateways, self._routes, self._classes):
            await informer.wait_synced()
        await self._context.view.wait_synced()
        self._classes.add_handler(self._on_shared_change)
        self._gateways.add_handler(self._on_gateway)
        self._routes.add_handler(self._on_route)
        of(SERVICES).add_handler(self._on_service)
        of(SECRETS).add_handler(self._on_secret)
        await run_all(gateways=self._gateway_loop.run(), routes=self._route_loop.run())

    def _on_gateway(self, change: Change) -> None:
        key = Key.of(change.last_known)
        self._gateway_loop.add(key)
        for route in self._routes.lister.all() if key not in self._routes_of else self._routes_of[key]:
            self._route_loop.add(route if isinstance(route, Key) else Key.of(route))

    def _on_route(self, change: Change) -> None:
        self._route_loop.add(Key.of(change.last_known))

    def _on_shared_change(self, _: Change) -> None:
        for gateway in self._gateways.lister.all():
            self._gateway_loop.add(Key.of(gateway))
        for route in self._routes.lister.all():
            self._route_loop.add(Key.of(route))

    def _on_service(self, change: Change) -> None:
        if change.old is None or change.new is None:
            for route in self._users.get(Key.of(change.last_known), ()):
                self._route_loop.add(route)

    def _on_secret(self, change: Change) -> None:
        namespace = meta.namespace(change.last_known)
        for key in self._certificates:
            if key.namespace == namespace:
                self._gateway_loop.add(key)

    # --- Gateways

    def _controller_of(self, gateway: ReadOnlyTree) -> str:
        """Return the controller of a Gateway that is served here; "" for one of another controller."""
        gateway_class = self._classes.lister.get("", gateway["spec"]["gatewayClassName"]) or {}
        controller = (gateway_class.get("spec") or {}).get("controllerName") or ""
        return controller if controller in CONTROLLERS else ""

    def _controller_at(self, key: Key) -> str:
        """Return the controller of a Gateway that exists."""
        gateway = self._gateways.lister.get(*key)
        assert gateway is not None
        return self._controller_of(gateway)

    async def _sync_gateway(self, key: Key) -> timedelta | None:
        gateway = self._served_gateway(*key)
        if gateway is None:
            self._served.discard(key)
            self._certificates.pop(key, None)
            self._unserved -= {each for each in self._unserved if each[:2] == key}
            if not self._served:
                self._http.release(_USER)
            return None
        self._served.add(key)
        await self._accept_class(gateway["spec"]["gatewayClassName"])
        problems = await self._load_certificates(key, gateway)
        await self._http.use(_USER)
        attached: dict[str, int] = {}
        for route in self._routes_of.get(key, ()):
            names = {
                name
                for parent in self._parents.get(route, ())
                if _gateway_of(route, parent.reference) == key
                for name in parent.listeners
            }
            for name in names:
                attached[name] = attached.get(name, 0) + 1
        status = gateway_status(gateway, self._address, attached, problems, self._now())
        await self._write_status(GATEWAYS, gateway, status)
        return None

    async def _accept_class(self, name: str) -> None:
        gateway_class = self._classes.lister.get("", name) or {}
        await self._write_status(GATEWAY_CLASSES, gateway_class, class_status(gateway_class, self._now()))

    async def _load_certificates(self, key: Key, gateway: ReadOnlyTree) -> dict[str, ReferenceProblem]:
        """Load the certificates of a Gateway's listeners; return why a listener has none, by its name."""
        problems, loaded = dict[str, ReferenceProblem](), list[tuple[str, Certificate]]()
        for listener in gateway["spec"].get("listeners") or ():
            if listener.get("protocol") != "HTTPS":
                continue
            reference = next(iter((listener.get("tls") or {}).get("certificateRefs") or ()), None)
            if reference is None:
                problems[listener["name"]] = ReferenceProblem(
                    _BAD_CERTIFICATE, "tls.certificateRefs is empty"
                )
                continue
            secret = Key(reference.get("namespace") or key.namespace, reference["name"])
            if not is_granted((GROUP, "Gateway", key.namespace), ("", "Secret", *secret), self._all_grants()):
                problems[listener["name"]] = not_permitted("secret", *secret)
                continue
            try:
                certificate = certificate_of(await self._context.client.get(SECRETS, secret))
            except NotFound:
                certificate = certificate_of(None)
            if certificate.problem:
                text = f'secret "{secret.namespace}/{secret.name}" {certificate.problem}'
                problems[listener["name"]] = ReferenceProblem(_BAD_CERTIFICATE, text)
            else:
                loaded.append(((listener.get("hostname") or "").lower(), certificate))
        self._certificates[key] = loaded
        self._unserved -= {each for each in self._unserved if each[:2] == key}
        self._unserved |= {(*key, name) for name in problems}
        return problems

    def _choose(self, host: str) -> ssl.SSLContext | None:
        found = [
            (len(pattern), certificate.context)
            for certificates in self._certificates.values()
            for pattern, certificate in certificates
            if shared_host(pattern, host.lower()) == host.lower()
        ]
        return max(found, key=lambda entry: entry[0])[1] if found else None

    # --- routes

    def _all_grants(self) -> list[ReadOnlyTree]:
        return [] if self._grants is None else [*self._grants.lister.all()]

    def _served_gateway(self, namespace: str, name: str) -> ReadOnlyTree | None:
        key = Key(namespace, name)
        gateway = self._gateways.lister.get(*key)
        return gateway if gateway is not None and self._controller_of(gateway) else None

    async def _sync_route(self, key: Key) -> timedelta | None:
        route = self._routes.lister.get(*key)
        before = {_gateway_of(key, parent.reference) for parent in self._parents.pop(key, ())}
        for users in (
            *self._users.values(),
            *(self._routes_of[gateway] for gateway in before if gateway in self._routes_of),
        ):
            users.discard(key)
        view = self._context.view
        cluster = Cluster(
            namespace_labels=view.namespace_labels, service=view.service, grants=self._all_grants()
        )
        parents = [] if route is None else [*parents_of(route, self._served_gateway, cluster)]
        self._table.put(key, [match for parent in parents for match in parent.matches])
        after = {_gateway_of(key, parent.reference) for parent in parents}
        if route is not None:
            self._parents[key] = parents
            for gateway in after:
                self._routes_of.setdefault(gateway, set()).add(key)
            for service in _services_of(route):
                self._users.setdefault(service, set()).add(key)
        for gateway in before | after:
            self._gateway_loop.add(gateway)
        if parents:
            assert route is not None
            status = route_status(route, parents, self._controller_at, self._now())
            await self._write_status(HTTP_ROUTES, route, status)
        return None

    # --- status

    def _now(self) -> str:
        return format_time(self._context.clock.now())

    async def _write_status(
        self, resource: Resource[ReadOnlyTree], tree: ReadOnlyTree, status: ReadOnlyTree
    ) -> None:
        if (tree.get("status") or {}) == status:
            return
        body = {"metadata": {"uid": meta.uid(tree)}, "status": status}
        await self._context.client.patch(resource, Key.of(tree), body, subresource="status")


def _gateway_of(route: Key, reference: ReadOnlyTree) -> Key:
    return Key(reference.get("namespace") or route.namespace, reference["name"])


def _services_of(route: ReadOnlyTree) -> set[Key]:
    return {
        Key(reference.get("namespace") or meta.namespace(route), reference["name"])
        for rule in (route.get("spec") or {}).get("rules") or ()
        for reference in rule.get("backendRefs") or ()
    }
