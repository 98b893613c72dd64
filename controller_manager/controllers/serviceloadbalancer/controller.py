"""The load balancer controller: it allocates addresses with the writes and Events of upstream's service controller."""

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, Literal

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.kinds import NODES, SERVICES
from mockube.client.queue.reconcile_loop import ReconcileLoop, RequeueWithBackoff
from mockube.client.queue.workqueue import RateLimiter, RetryBackoff
from mockube.client.resources import Key
from mockube.controller_manager.control.runnable import Context, Runnable

FINALIZER: Final = "service.kubernetes.io/load-balancer-cleanup"
_LOAD_BALANCER: Final = "LoadBalancer"
_RELEVANT_FIELDS: Final = (
    "loadBalancerSourceRanges",
    "ports",
    "sessionAffinity",
    "sessionAffinityConfig",
    "loadBalancerIP",
    "externalIPs",
    "externalTrafficPolicy",
    "healthCheckNodePort",
    "ipFamilies",
)
"""The fields of the spec whose change requires a reconciliation."""


WORKERS: Final = 1
ACCOUNT: Final = "service-controller"
_RETRIES: Final = RetryBackoff(base=5.0, max_seconds=300.0)
_EXCLUDED_LABEL: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


class ServiceLoadBalancerController:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._recorder = context.recorder.of(ACCOUNT)
        self._pool = AddressPool(ip_network(context.options.networks.load_balancer_cidr))
        self._services, self._nodes = context.informers.of(SERVICES), context.informers.of(NODES)
        self._loop = ReconcileLoop(
            "service", self._sync, workers=WORKERS, clock=context.clock, metrics=context.metrics
        )
        self._loop.limiter = RateLimiter(context.clock, _RETRIES)
        self._services.add_handler(self._on_change)

    async def run(self) -> None:
        await self._services.wait_synced()
        await self._nodes.wait_synced()
        for service in self._services.lister.all():
            for address in addresses(service) if needs_load_balancer(service) else ():
                self._pool.record(meta.uid(service), address)
        await self._loop.run()

    def _on_change(self, change: Change) -> None:
        if change.old is not None and (change.new is None or meta.uid(change.old) != meta.uid(change.new)):
            self._pool.release(meta.uid(change.old))
        if change.new is not None and needs_sync(change.old, change.new):
            self._loop.add(Key.of(change.new))

    async def _sync(self, key: Key) -> None:
        service = self._services.lister.get(*key)
        if service is None:
            return
        try:
            if not needs_load_balancer(service) or needs_cleanup(service):
                await self._delete(service)
            else:
                await self._ensure(service)
        except (AddressInUse, AddressPoolExhausted) as error:
            problem = f"failed to ensure load balancer: {error}"
            self._record_event(
                service, "Warning", "SyncLoadBalancerFailed", f"Error syncing load balancer: {problem}"
            )
            raise RequeueWithBackoff(problem) from error
        except ApiError as error:
            problem = f"Error syncing load balancer: {error}"
            self._record_event(service, "Warning", "SyncLoadBalancerFailed", problem)
            raise

    async def _ensure(self, service: ReadOnlyTree) -> None:
        self._record_event(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
        await self._patch(service, finalizer_patch(service, present=True))
        if not any(_EXCLUDED_LABEL not in meta.labels(node) for node in self._nodes.lister.all()):
            message = "There are no available nodes for LoadBalancer"
            self._record_event(service, "Warning", "UnAvailableLoadBalancer", message)
        address = self._pool.allocate(meta.uid(service), service["spec"].get("loadBalancerIP") or "")
        self._record_event(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")
        await self._patch(service, status_patch(service, address))

    async def _delete(self, service: ReadOnlyTree) -> None:
        if meta.uid(service) in self._pool:
            self._record_event(service, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
            self._pool.release(meta.uid(service))
        await self._patch(service, finalizer_patch(service, present=False))
        self._record_event(service, "Normal", "DeletedLoadBalancer", "Deleted load balancer")
        with suppress(NotFound):  # the Service is deleted with its last finalizer
            await self._patch(service, status_patch(service, ""))

    async def _patch(self, service: ReadOnlyTree, body: Mapping[str, Any] | None) -> None:
        if body is not None:
            await self._client.patch(SERVICES, Key.of(service), body, kind="strategic", subresource="status")

    def _record_event(
        self, service: ReadOnlyTree, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        self._recorder.record(service, kind, reason, message)


# --- decisions about one Service, as in upstream's service controller


def needs_load_balancer(service: ReadOnlyTree) -> bool:
    """Return whether a Service needs a load balancer; those with a class have another implementation."""
    spec = service["spec"]
    return spec.get("type") == _LOAD_BALANCER and spec.get("loadBalancerClass") is None


def needs_cleanup(service: ReadOnlyTree) -> bool:
    if FINALIZER not in meta.finalizers(service):
        return False
    return meta.is_deleting(service) or service["spec"].get("type") != _LOAD_BALANCER


def needs_sync(old: ReadOnlyTree | None, new: ReadOnlyTree) -> bool:
    """Return whether a change of a Service requires a reconciliation."""
    if needs_cleanup(new) or old is None:
        return needs_cleanup(new) or needs_load_balancer(new)
    if not needs_load_balancer(old) and not needs_load_balancer(new):
        return False
    return needs_load_balancer(old) != needs_load_balancer(new) or _relevant_fields(old) != _relevant_fields(
        new
    )


def _relevant_fields(service: ReadOnlyTree) -> tuple[object, ...]:
    spec = service["spec"]
    return (meta.uid(service), meta.annotations(service), *(spec.get(field) for field in _RELEVANT_FIELDS))


def addresses(service: ReadOnlyTree) -> list[str]:
    """Return the addresses in the status of a Service."""
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [entry["ip"] for entry in ingress if entry.get("ip")]


def status_patch(service: ReadOnlyTree, address: str) -> dict[str, Any] | None:
    """Return the patch that writes the address into the status, or removes it if empty; None without a difference."""
    ingress = [{"ip": address, "ipMode": "VIP"}] if address else []
    present = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    if present == ingress:
        return None
    return {"metadata": _uid_precondition(service), "status": {"loadBalancer": {"ingress": ingress or None}}}


def finalizer_patch(service: ReadOnlyTree, *, present: bool) -> dict[str, Any] | None:
    """Return the patch that adds or removes the finalizer; None without a difference."""
    if (FINALIZER in meta.finalizers(service)) == present:
        return None
    field = "finalizers" if present else "$deleteFromPrimitiveList/finalizers"
    return {"metadata": {**_uid_precondition(service), field: [FINALIZER]}}


def _uid_precondition(service: ReadOnlyTree) -> dict[str, str]:
    """Return the uid as metadata: the patch fails for a later Service of the same name."""
    return {"uid": meta.uid(service)}


# --- the addresses of Services


class AddressInUse(Exception):
    """The requested address is invalid, or allocated to another Service."""


class AddressPoolExhausted(Exception):
    """Every address of the range is allocated."""


class AddressPool:
    """The addresses of a range, and the Services that have them. Released addresses are allocated again last."""

    def __init__(self, network: IPv4Network | IPv6Network) -> None:
        self._network = network
        reserved = 1 if network.num_addresses > 2 else 0
        self._first = network.network_address + reserved
        self._count = network.num_addresses - 2 * reserved
        """The addresses without the network's first and last one, which are reserved unless it has no others."""
        self._uid_by_address: dict[str, str] = {}
        self._address_by_uid: dict[str, str] = {}
        self._next = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._address_by_uid

    def record(self, uid: str, address: str) -> None:
        """Record a Service's address; of two Services with the same one the first keeps it."""
        if self._uid_by_address.setdefault(address, uid) == uid:
            self._address_by_uid[uid] = address

    def allocate(self, uid: str, requested: str) -> str:
        """Return the Service's address: its present one, unless another one is requested, or a new one."""
        if requested and self._address_by_uid.get(uid) != requested:
            self._check_requested(uid, requested)
            self.release(uid)
            self.record(uid, requested)
        if uid not in self._address_by_uid:
            self.record(uid, self._next_free_address())
        return self._address_by_uid[uid]

    def release(self, uid: str) -> None:
        address = self._address_by_uid.pop(uid, None)
        if address is not None:
            del self._uid_by_address[address]

    def _check_requested(self, uid: str, requested: str) -> None:
        try:
            address = ip_address(requested)
        except ValueError as error:
            raise AddressInUse(f"{requested} is not an IP address") from error
        if address.is_unspecified or address.is_multicast:
            raise AddressInUse(f"{requested} is no address of one server")
        if address.is_loopback and address not in self._network:
            raise AddressInUse(f"{requested} is an address of this machine, and not one of {self._network}")
        if self._uid_by_address.get(requested, uid) != uid:
            raise AddressInUse(f"{requested} is the address of another service")

    def _next_free_address(self) -> str:
        for _ in range(min(self._count, len(self._uid_by_address) + 1)):
            address = str(self._first + self._next)
            self._next = (self._next + 1) % self._count
            if address not in self._uid_by_address:
                return address
        raise AddressPoolExhausted(f"no address of {self._network} is left")


SERVICE_LOAD_BALANCERS: Final = Runnable(
    name="service-lb-controller", service_account=ACCOUNT, build=ServiceLoadBalancerController
)
