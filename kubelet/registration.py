"""Registers simulated nodes and renews their Leases, like each node's kubelet.

A node that a user deletes is registered again at the next start, or after a write of the ConfigMap in `resizing`.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_NODE_LEASE
from mockube.client.kinds import CSI_NODES, LEASES, NODES
from mockube.client.resources import Key
from mockube.client.verbs import AnyResource, Client
from mockube.component_base.clock import Clock

from . import node_shapes
from .lease_renewals import LeaseRenewals
from .node_objects import csi_node, lease, lease_renewal
from .node_registry import NodeRegistry

_RENEW_INTERVAL: Final = 10.0
"""The seconds between two renewals of a Lease by a kubelet: a quarter of its duration."""
_RENEWALS_PER_SECOND: Final = 100
"""Of all nodes together: renewals are nearly all that an idle cluster costs."""


def renew_interval(nodes: int, grace_period: float) -> timedelta:
    """Return the time between two renewals: longer than a kubelet's for many nodes, but at most half of the grace period."""
    seconds = max(_RENEW_INTERVAL, min(nodes / _RENEWALS_PER_SECOND, grace_period / 2))
    return timedelta(seconds=seconds)


class NodeRegistration:
    def __init__(
        self,
        client: Client,
        registry: NodeRegistry,
        *,
        clock: Clock,
        grace_period: float,
        requeue: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`grace_period`: the seconds after which a node without renewals is unhealthy. `requeue` queues a heartbeat."""
        self._client = client
        self._registry = registry
        self._clock = clock
        self._interval = partial(renew_interval, grace_period=grace_period)
        self.renewals = LeaseRenewals(
            client,
            clock,
            is_active=lambda name: registry.node_with_kubelet(name) is not None,
            interval=self._interval,
            renew=requeue,
        )
        self._without_lease: set[str] = set()
        """The names of registered nodes whose Lease has not been created."""

    async def register(self, node: ReadOnlyTree) -> None:
        self._without_lease.add(meta.name(node))
        owner = await self._get_or_create(NODES, node)
        await self._get_or_create(CSI_NODES, csi_node(owner))

    async def change(self, present: ReadOnlyTree, desired: ReadOnlyTree) -> None:
        """Change a registered node as its pool has changed; raise Conflict if another client has just changed it."""
        key = Key.of(present)
        changes = node_shapes.status_patch(present, desired)
        present = await self._client.patch(NODES, key, changes, subresource="status")
        await self._client.patch(NODES, key, node_shapes.patch(present, desired))

    async def heartbeat(self, name: str) -> timedelta | None:
        """Renew the node's Lease if it is due; return the delay to the next renewal.

        It is None for an inactive kubelet, and if the Lease is renewed together with others from then on.
        """
        renewals, owner = self.renewals, self._registry.node_with_kubelet(name)
        if owner is None:
            renewals.forget(name)
            return None
        now, renewed_at = self._clock.now(), renewals.renewed_at.get(name)
        interval = self._interval(len(renewals.renewed_at))
        if renewed_at is None or (not renewals.is_on and now >= renewed_at + interval):
            await self._renew(owner, now)
            renewals.record(name, now)
            renewed_at = now
        return None if renewals.is_on else renewed_at + interval - now

    async def _renew(self, owner: ReadOnlyTree, now: datetime) -> None:
        name = meta.name(owner)
        if name in self._without_lease:
            with suppress(AlreadyExists):  # a manager that ran before has created it: it is renewed below
                await self._client.create(LEASES, lease(owner, now))
                self._without_lease.discard(name)
                return
            self._without_lease.discard(name)
        try:
            spec = lease_renewal(name, now)
            await self._client.patch(LEASES, Key(NAMESPACE_NODE_LEASE, name), {"spec": spec})
        except NotFound:
            await self._client.create(LEASES, lease(owner, now))

    async def _get_or_create(self, resource: AnyResource, body: ReadOnlyTree) -> ReadOnlyTree:
        """Create an object, or get the existing one."""
        try:
            return await self._client.create(resource, body)
        except AlreadyExists:
            return await self._client.get(resource, Key.of(body))
