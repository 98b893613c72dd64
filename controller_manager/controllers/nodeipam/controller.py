"""The node IPAM controller: it allocates a range of pod addresses of each IP family to each node."""

import logging
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.kinds import NODES
from mockube.client.queue.reconcile_loop import ReconcileLoop, RequeueWithBackoff
from mockube.client.resources import Key
from mockube.controller_manager.config.networks import IPAM, allocates, node_ranges
from mockube.controller_manager.control.runnable import Context, Runnable

from .cidrset import CIDROutOfRange, CidrSet, Network, RangeFull

LOG = logging.getLogger(__name__)

WORKERS: Final = 30
EVENT_SOURCE: Final = "cidrAllocator"


class NodeIpamController:
    def __init__(self, context: Context) -> None:
        config = context.options
        self._client = context.client
        self._recorder = context.recorder.of(EVENT_SOURCE)
        self._is_enabled = allocates(config)
        self._sets = [CidrSet(network) for network in node_ranges(config)] if self._is_enabled else []
        for text in config.networks.service_cluster_ip_range if self._is_enabled else ():
            self._occupy_service_range(ip_network(text))
        self._allocated: dict[str, str] = {}
        """The uids of the nodes that have ranges, by name."""
        self._nodes = context.informers.of(NODES)
        self._loop = ReconcileLoop(
            "cidrallocator_node", self._sync, workers=WORKERS, clock=context.clock, metrics=context.metrics
        )
        if self._is_enabled:
            self._nodes.add_handler(self._on_change)

    async def run(self) -> None:
        await self._nodes.wait_synced()
        for node in self._nodes.lister.all():
            self._occupy(node)
        await self._loop.run()

    def _occupy_service_range(self, services: Network) -> None:
        for cidr_set in self._sets:
            if cidr_set.overlaps(services):
                cidr_set.occupy(services)

    def _on_change(self, change: Change) -> None:
        if change.new is not None:
            self._loop.add(Key.of(change.new))
            return
        node = change.last_known
        self._allocated.pop(meta.name(node), None)
        self._release([ip_network(text, strict=False) for text in _pod_cidrs(node)])

    async def _sync(self, key: Key) -> None:
        node = self._nodes.lister.get("", key.name)
        if node is None or meta.is_deleting(node):
            return
        if _pod_cidrs(node):
            self._occupy(node)
        elif self._allocated.get(key.name) != meta.uid(node):
            await self._allocate(node)

    def _occupy(self, node: ReadOnlyTree) -> None:
        """Mark a node's ranges as allocated. One that does not fit the flags is only logged, while upstream exits."""
        if self._allocated.get(meta.name(node)) == meta.uid(node) or not _pod_cidrs(node):
            return
        self._allocated[meta.name(node)] = meta.uid(node)
        for position, text in enumerate(_pod_cidrs(node)):
            try:
                self._sets[position].occupy(ip_network(text, strict=False))
            except (CIDROutOfRange, ValueError, IndexError) as error:
                LOG.warning(
                    "node %s has the pod CIDR %s, which cannot be reserved: %s", meta.name(node), text, error
                )

    async def _allocate(self, node: ReadOnlyTree) -> None:
        networks: list[Network] = []
        try:
            networks += (cidr_set.allocate() for cidr_set in self._sets)
        except RangeFull as error:
            self._release(networks)
            self._record_event(node, "CIDRNotAvailable")
            raise RequeueWithBackoff(
                f"failed to allocate cidr from cluster cidr at idx:{len(networks)}: {error}"
            ) from error
        ranges = [str(network) for network in networks]
        self._allocated[meta.name(node)] = meta.uid(node)
        body = {"metadata": {"uid": meta.uid(node)}, "spec": {"podCIDR": ranges[0], "podCIDRs": ranges}}
        try:
            await self._client.patch(NODES, Key.of(node), body, kind="strategic")
        except ApiError:
            self._allocated.pop(meta.name(node), None)
            self._release(networks)
            if self._nodes.lister.get("", meta.name(node)) is not None:
                self._record_event(node, "CIDRAssignmentFailed")
            raise

    def _release(self, networks: Sequence[Network]) -> None:
        for cidr_set, network in zip(self._sets, networks, strict=False):
            if cidr_set.overlaps(network):
                cidr_set.release(network)

    def _record_event(self, node: ReadOnlyTree, reason: str) -> None:
        name = meta.name(node)
        about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": meta.uid(node)}}
        self._recorder.record(about, "Normal", reason, f"Node {name} status is now: {reason}")


def _pod_cidrs(node: ReadOnlyTree) -> Sequence[str]:
    spec = node.get("spec") or {}
    return spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else ())


NODE_IPAM: Final = Runnable(name=IPAM, service_account="node-controller", build=NodeIpamController)
