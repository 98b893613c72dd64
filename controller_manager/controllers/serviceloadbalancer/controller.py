"""Give Services of type LoadBalancer an address, with the writes and events of upstream's service controller."""

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_network
from typing import Any, Final, Literal

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Change
from mockube.controller_manager.client.kinds import NODES, SERVICES
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.runner import Loop, TryAgain
from mockube.controller_manager.controllers.serviceloadbalancer.desired import (
    addresses,
    finalizer_patch,
    needs_cleanup,
    needs_load_balancer,
    needs_look,
    status_patch,
)
from mockube.controller_manager.controllers.serviceloadbalancer.pool import (
    AddressInUse,
    AddressPool,
    NoAddressLeft,
)
from mockube.controller_manager.queue.workqueue import RateLimiter, Retries

WORKERS: Final = 1
ACCOUNT: Final = "service-controller"
_RETRIES: Final = Retries(base=5.0, max_seconds=300.0)
_EXCLUDED: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


class ServiceLoadBalancers:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._recorder = context.recorder.of(ACCOUNT)
        self._pool = AddressPool(ip_network(context.options.networks.load_balancer_cidr))
        self._services, self._nodes = context.informers.of(SERVICES), context.informers.of(NODES)
        self._loop = Loop(
            "service", self._sync, workers=WORKERS, clock=context.clock, metrics=context.metrics
        )
        self._loop.limiter = RateLimiter(context.clock, _RETRIES)
        self._services.add_handler(self._on_change)

    async def run(self) -> None:
        await self._services.wait_synced()
        await self._nodes.wait_synced()
        for service in self._services.lister.all():
            for address in addresses(service) if needs_load_balancer(service) else ():
                self._pool.note(meta.uid(service), address)
        await self._loop.run()

    def _on_change(self, change: Change) -> None:
        if change.old is not None and (change.new is None or meta.uid(change.old) != meta.uid(change.new)):
            self._pool.release(meta.uid(change.old))
        if change.new is not None and needs_look(change.old, change.new):
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
        except (AddressInUse, NoAddressLeft) as error:
            problem = f"failed to ensure load balancer: {error}"
            self._record_event(
                service, "Warning", "SyncLoadBalancerFailed", f"Error syncing load balancer: {problem}"
            )
            raise TryAgain(problem) from error
        except ApiError as error:
            problem = f"Error syncing load balancer: {error}"
            self._record_event(service, "Warning", "SyncLoadBalancerFailed", problem)
            raise

    async def _ensure(self, service: ReadOnlyTree) -> None:
        self._record_event(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
        await self._patch(service, finalizer_patch(service, present=True))
        if not any(_EXCLUDED not in meta.labels(node) for node in self._nodes.lister.all()):
            message = "There are no available nodes for LoadBalancer"
            self._record_event(service, "Warning", "UnAvailableLoadBalancer", message)
        address = self._pool.give(meta.uid(service), service["spec"].get("loadBalancerIP") or "")
        self._record_event(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")
        await self._patch(service, status_patch(service, address))

    async def _delete(self, service: ReadOnlyTree) -> None:
        if meta.uid(service) in self._pool:
            self._record_event(service, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
            self._pool.release(meta.uid(service))
        await self._patch(service, finalizer_patch(service, present=False))
        self._record_event(service, "Normal", "DeletedLoadBalancer", "Deleted load balancer")
        with suppress(NotFound):  # it is deleted with its last finalizer
            await self._patch(service, status_patch(service, ""))

    async def _patch(self, service: ReadOnlyTree, body: Mapping[str, Any] | None) -> None:
        if body is not None:
            await self._client.patch(SERVICES, Key.of(service), body, kind="strategic", subresource="status")

    def _record_event(
        self, service: ReadOnlyTree, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        self._recorder.record(service, kind, reason, message)


SERVICE_LOAD_BALANCERS: Final = Runnable(
    name="service-lb-controller", service_account=ACCOUNT, build=ServiceLoadBalancers
)
