"""The Ingresses that this machine serves: their rules, certificates, status and events."""

import ssl
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_DEFAULT_INGRESS_CLASS
from mockube.client.cache.store import Change
from mockube.client.kinds import INGRESS_CLASSES, INGRESSES, SECRETS
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.network.ingress import NGINX, TRAEFIK, IngressRule, class_of
from mockube.network.view import Peer

from .certificates import Certificate, certificate_of
from .http_listeners import HttpListeners
from .ingress_routing import CONTROLLERS, IngressRouter, IngressTable, unknown_annotations
from .settings import PublisherContext
from .sockets import SocketConnection

NAME: Final = "ingress-publisher"
_NAMES: Final = {"": NGINX, "nginx": NGINX, "traefik": TRAEFIK}
"""The controllers of classes without an object, as an add-on would bring one."""
_USER: Final = "ingress"


class Ingresses:
    def __init__(self, context: PublisherContext, http: HttpListeners) -> None:
        self._context = context
        self._http = http
        self._address = context.settings.address
        self._recorder = context.recorder.of("nginx-ingress-controller")
        self._tables = {controller: IngressTable() for controller in CONTROLLERS}
        self._controllers: dict[Key, str] = {}
        """The controller of each Ingress that is served."""
        self._certificates: dict[Key, dict[str, Certificate]] = {}
        """The certificates of each Ingress, by host."""
        self._secrets: dict[Key, tuple[str, Certificate]] = {}
        """The certificates of Secrets, with the version of each."""
        self._users: dict[Key, set[Key]] = {}
        """The Ingresses that name each Secret."""
        self._watches_secrets = False
        self._reported: dict[Key, frozenset[str]] = {}
        self._loop = ReconcileLoop(NAME, self._sync, workers=1, clock=context.clock, metrics=context.metrics)
        self._routers = {
            controller: self._router({controller: table}) for controller, table in self._tables.items()
        }
        http.add_router(self._router(self._tables), self._choose)

    def _router(self, tables: dict[str, IngressTable]) -> IngressRouter:
        def https_port() -> int:
            endpoint = self._http.endpoint(uses_tls=True)
            return 443 if endpoint is None else endpoint.port

        random = self._context.random
        return IngressRouter(
            tables,
            lambda host: self._choose(host) is not None,
            https_port,
            lambda limit: int.from_bytes(random.bytes(4)) % limit,
        )

    async def run(self) -> None:
        self._ingresses = self._context.informers.of(INGRESSES)
        self._classes = self._context.informers.of(INGRESS_CLASSES)
        await self._classes.wait_synced()
        self._ingresses.add_handler(self._on_ingress)
        self._classes.add_handler(self._on_class)
        await self._loop.run()

    async def serve_pod(
        self, connection: SocketConnection, controller: str, peer: Peer, port: int, *, uses_tls: bool
    ) -> None:
        """Serve a connection to the pod of a controller."""
        router = self._routers.get(controller) or self._router({})
        await self._http.serve(router, connection, peer, port, uses_tls=uses_tls)

    def _on_ingress(self, change: Change) -> None:
        self._loop.add(Key.of(change.last_known))

    def _on_class(self, _: Change) -> None:
        for ingress in self._ingresses.lister.all():
            self._loop.add(Key.of(ingress))

    def _on_secret(self, change: Change) -> None:
        for key in self._users.get(Key.of(change.last_known), ()):
            self._loop.add(key)

    def _controller_of(self, ingress: ReadOnlyTree) -> str:
        """Return the controller of an Ingress that is served here; "" for one of another controller."""
        name = class_of(ingress)
        if name:
            found = self._classes.lister.get("", name)
        else:
            classes = self._classes.lister.all()
            found = next(
                (
                    each
                    for each in classes
                    if meta.annotations(each).get(ANNOTATION_DEFAULT_INGRESS_CLASS) == "true"
                ),
                None,
            )
            if found is None and classes:
                return ""
        controller = _NAMES.get(name, "") if found is None else found.get("spec", {}).get("controller") or ""
        return controller if controller in self._tables else ""

    async def _sync(self, key: Key) -> timedelta | None:
        ingress = self._ingresses.lister.get(*key)
        controller = "" if ingress is None else self._controller_of(ingress)
        before = self._controllers.pop(key, "")
        if before and before != controller:
            self._tables[before].put(key, None)
        if not controller:
            self._forget(key)
            if ingress is not None and before:
                await self._write_status(ingress, "")
            return None
        assert ingress is not None
        self._controllers[key] = controller
        self._tables[controller].put(key, ingress)
        problems = await self._load_certificates(key, ingress)
        if problem := await self._http.use(_USER):
            problems.append(("PublishedPortReplaced", problem))
        self._report(key, ingress, controller, problems)
        for other, rule in self._tables[controller].replaced(ingress):
            if _duplicate(rule) not in self._reported.get(other, ()):
                self._loop.add(other)
        await self._write_status(ingress, self._address)
        return None

    def _forget(self, key: Key) -> None:
        self._certificates.pop(key, None)
        self._reported.pop(key, None)
        for secret in [secret for secret, users in self._users.items() if key in users]:
            self._users[secret].discard(key)
            if not self._users[secret]:
                del self._users[secret], self._secrets[secret]
        if not self._controllers:
            self._http.release(_USER)

    # --- certificates

    def _choose(self, host: str) -> ssl.SSLContext | None:
        """Return the TLS of a host; None for the fake certificate."""
        host = host.lower()
        for server in (host, f"*.{host.partition('.')[2]}"):
            for table in self._tables.values():
                for rule in table.of_host(server):
                    found = self._certificates.get(Key.of(rule.ingress), {}).get(server)
                    if found is not None:
                        return found.context
        return None

    async def _load_certificates(self, key: Key, ingress: ReadOnlyTree) -> list[tuple[str, str]]:
        """Load the certificates that an Ingress names; return what is wrong with them."""
        spec = ingress.get("spec") or {}
        hosts = {(rule.get("host") or "").lower() for rule in spec.get("rules") or ()} - {""}
        chosen: dict[str, Certificate] = {}
        problems = list[tuple[str, str]]()
        names = set[Key]()
        for entry in spec.get("tls") or ():
            if not entry.get("secretName"):
                continue
            secret = Key(key.namespace, entry["secretName"])
            names.add(secret)
            certificate = await self._certificate(secret)
            listed = {host.lower() for host in entry.get("hosts") or ()}
            for host in sorted(hosts & listed if listed else hosts):
                problem = certificate.problem or (
                    "" if certificate.is_for(host) else f"has a certificate that is not for the host {host}"
                )
                if not problem:
                    chosen.setdefault(host, certificate)
                elif listed:
                    text = f'secret "{secret}" {problem}: a fake certificate is served for {host}'
                    problems.append(("BadCertificate", text))
        for secret, users in [*self._users.items()]:
            if secret not in names:
                users.discard(key)
        for secret in names:
            self._users.setdefault(secret, set()).add(key)
        self._certificates[key] = chosen
        return problems

    async def _certificate(self, key: Key) -> Certificate:
        if not self._watches_secrets:
            self._watches_secrets = True
            # Few clusters have Ingresses with TLS: only then all Secrets are watched.
            self._context.informers.of(SECRETS).add_handler(self._on_secret)
        try:
            secret: ReadOnlyTree | None = await self._context.client.get(SECRETS, key)
        except NotFound:
            secret = None
        version = "" if secret is None else meta.resource_version(secret)
        present = self._secrets.get(key)
        if present is not None and present[0] == version:
            return present[1]
        certificate = certificate_of(secret)
        self._secrets[key] = version, certificate
        return certificate

    # --- events and status

    def _report(
        self, key: Key, ingress: ReadOnlyTree, controller: str, problems: list[tuple[str, str]]
    ) -> None:
        """Record what is wrong, once for each state of an Ingress."""
        duplicates = self._tables[controller].duplicates(ingress)
        problems += [("DuplicatePath", _duplicate(rule)) for rule in duplicates]
        if controller == NGINX:
            problems += [
                ("NotSimulated", f"the annotation nginx.ingress.kubernetes.io/{name} is not simulated")
                for name in unknown_annotations(ingress)
            ]
        reported = self._reported.get(key)
        if reported is None and controller == NGINX:
            self._recorder.record(ingress, "Normal", "Sync", "Scheduled for sync")
        for reason, text in problems:
            if text not in (reported or ()):
                self._recorder.record(ingress, "Warning", reason, text)
        self._reported[key] = frozenset(text for _, text in problems)

    async def _write_status(self, ingress: ReadOnlyTree, address: str) -> None:
        """Write the address into the status, unless another controller has written one."""
        present = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
        desired: list[dict[str, Any]] = [{"ip": address}] if address else []
        if present == desired or not all(self._is_own(entry) for entry in present):
            return
        body = {
            "metadata": {"uid": meta.uid(ingress)},
            "status": {"loadBalancer": {"ingress": desired or None}},
        }
        await self._context.client.patch(INGRESSES, Key.of(ingress), body, subresource="status")

    def _is_own(self, entry: ReadOnlyTree) -> bool:
        text = entry.get("ip") or ""
        try:
            return text == self._address or ip_address(text).is_loopback
        except ValueError:
            return False


def _duplicate(rule: IngressRule) -> str:
    """Return the message about a rule that is served in the place of another one."""
    return f'host "{rule.host}" and path "{rule.path}" is already defined in ingress {Key.of(rule.ingress)}, which is served'
