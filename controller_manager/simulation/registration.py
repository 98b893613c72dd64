"""Registers simulated nodes and keeps their Leases renewed, as each node's kubelet would.

A node that somebody deletes stays away until the next start, or until it is asked for again (`resizing`).
"""

from datetime import datetime, timedelta
from typing import Final

from apimachinery import meta
from apimachinery.clock import Clock
from apimachinery.status import AlreadyExists, NotFound
from apimachinery.wellknown import NAMESPACE_NODE_LEASE
from controller_manager.kinds import CSI_NODES, LEASES, NODES
from controller_manager.runtime.client import AnyResource, Client
from controller_manager.runtime.resource import Key, Tree
from controller_manager.simulation.fleet import Fleet
from controller_manager.simulation.node_objects import csi_node, lease, renewal

RENEWED_EVERY: Final = timedelta(seconds=10)


class Registration:
    def __init__(self, client: Client, fleet: Fleet, *, clock: Clock) -> None:
        self._client = client
        self._fleet = fleet
        self._clock = clock
        self._renewed_at: dict[str, datetime] = {}

    async def register(self, node: Tree) -> None:
        owner = await self._create(NODES, node)
        await self._create(CSI_NODES, csi_node(owner))

    async def heartbeat(self, name: str) -> timedelta | None:
        """Renews the Lease of the node if it is time; answers when it is again, if the kubelet is at work."""
        owner = self._fleet.node_at_work(name)
        if owner is None:
            self._renewed_at.pop(name, None)
            return None
        now = self._clock.now()
        renewed_at = self._renewed_at.get(name)
        if renewed_at is not None and now < renewed_at + RENEWED_EVERY:
            return renewed_at + RENEWED_EVERY - now
        await self._renew(owner, now)
        self._renewed_at[name] = now
        return RENEWED_EVERY

    async def _renew(self, owner: Tree, now: datetime) -> None:
        name = meta.name(owner)
        try:
            spec = renewal(name, now)
            await self._client.patch(LEASES, Key(NAMESPACE_NODE_LEASE, name), {"spec": spec})
        except NotFound:
            await self._client.create(LEASES, lease(owner, now))

    async def _create(self, resource: AnyResource, body: Tree) -> Tree:
        """The object, whether it was there before or not."""
        try:
            return await self._client.create(resource, body)
        except AlreadyExists:
            return await self._client.get(resource, Key.of(body))
