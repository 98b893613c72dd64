"""Registers simulated nodes and keeps their Leases renewed, as each node's kubelet would.

A node that a user deletes stays away until the next start, or until it is requested again (`resizing`).
"""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import AlreadyExists, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_NODE_LEASE
from mockube.controller_manager.client.client import AnyResource, Client
from mockube.controller_manager.client.kinds import CSI_NODES, LEASES, NODES
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.kubelet.node_objects import csi_node, lease, renewal
from mockube.controller_manager.kubelet.node_registry import NodeRegistry

RENEW_INTERVAL: Final = timedelta(seconds=10)


class Registration:
    def __init__(self, client: Client, registry: NodeRegistry, *, clock: Clock) -> None:
        self._client = client
        self._registry = registry
        self._clock = clock
        self._renewed_at: dict[str, datetime] = {}
        self._has_no_lease: set[str] = set()
        """Nodes that were registered a moment ago."""

    async def register(self, node: ReadOnlyTree) -> None:
        self._has_no_lease.add(meta.name(node))
        owner = await self._create(NODES, node)
        await self._create(CSI_NODES, csi_node(owner))

    async def heartbeat(self, name: str) -> timedelta | None:
        """Renews the Lease of the node if it is time; answers when it is again, if the kubelet is at work."""
        owner = self._registry.active_node(name)
        if owner is None:
            self._renewed_at.pop(name, None)
            return None
        now = self._clock.now()
        renewed_at = self._renewed_at.get(name)
        if renewed_at is not None and now < renewed_at + RENEW_INTERVAL:
            return renewed_at + RENEW_INTERVAL - now
        await self._renew(owner, now)
        self._renewed_at[name] = now
        return RENEW_INTERVAL

    async def _renew(self, owner: ReadOnlyTree, now: datetime) -> None:
        name = meta.name(owner)
        if name in self._has_no_lease:
            with suppress(AlreadyExists):
                await self._client.create(LEASES, lease(owner, now))
                self._has_no_lease.discard(name)
                return
            self._has_no_lease.discard(name)
        try:
            spec = renewal(name, now)
            await self._client.patch(LEASES, Key(NAMESPACE_NODE_LEASE, name), {"spec": spec})
        except NotFound:
            await self._client.create(LEASES, lease(owner, now))

    async def _create(self, resource: AnyResource, body: ReadOnlyTree) -> ReadOnlyTree:
        """The object, whether it was there before or not."""
        try:
            return await self._client.create(resource, body)
        except AlreadyExists:
            return await self._client.get(resource, Key.of(body))
