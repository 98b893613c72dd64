"""All simulated nodes, their addresses, and the addresses of their pods.

Reads caches; writes nothing.
"""

import logging
from collections.abc import Mapping, Sequence

from mockube.apimachinery import quantity
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.kubelet.addresses import (
    MAX_NODES,
    NumberedNode,
    PodAddresses,
    PodNetwork,
    matching_addresses,
    node_address,
    pod_networks,
)
from mockube.controller_manager.kubelet.node_objects import internal_ip, is_silent, is_simulated
from mockube.controller_manager.kubelet.pod_lifecycle.pod import NodeContext
from mockube.controller_manager.kubelet.pod_lifecycle.resize import NodeResources, total_requests
from mockube.controller_manager.kubelet.resizing import number_in
from mockube.controller_manager.workloads.indexes import BY_NODE

LOG = logging.getLogger(__name__)


class NodeRegistry:
    def __init__(
        self,
        nodes: Lister[ReadOnlyTree],
        pods: Lister[PodView],
        *,
        details: bool,
        waits_for_ranges: bool = False,
    ) -> None:
        """`waits_for_ranges`: a controller allocates each node's podCIDR, and pods get no address before."""
        self._nodes = nodes
        self._waits_for_ranges = waits_for_ranges
        self._pods = pods
        self._details = details
        self._strangers: dict[str, int] = {}
        self.addresses = PodAddresses()

    def active_node(self, name: str) -> ReadOnlyTree | None:
        """The node of that name, if it is simulated and not cut off."""
        node = self._nodes.get("", name)
        return node if node is not None and is_simulated(node) and not is_silent(node) else None

    def number_of(self, name: str) -> int:
        """Return the number of a node: that in the name of an own node; other nodes are numbered down from the end."""
        return number_in(name) or self._strangers.setdefault(name, MAX_NODES - len(self._strangers))

    def ip_of(self, name: str) -> str:
        node = self._nodes.get("", name)
        return (internal_ip(node) if node else "") or node_address(self.number_of(name))

    def lacks_range(self, node: ReadOnlyTree) -> bool:
        return self._waits_for_ranges and not ranges_of(node)

    def pod_ip(self, uid: str, node: str) -> str:
        return self.addresses.of(uid, self._network_of(node))

    def pod_ips(self, uid: str, node: str) -> Sequence[str]:
        """One of each family of addresses that the node has a range of."""
        networks = pod_networks(ranges_of(self._nodes.get("", node) or {}))
        address = self.pod_ip(uid, node)
        return matching_addresses(address, networks) if len(networks) > 1 else (address,)

    def _network_of(self, name: str) -> PodNetwork:
        networks = pod_networks(ranges_of(self._nodes.get("", name) or {}))
        return networks[0] if networks else NumberedNode(self.number_of(name))

    def context_of(self, pod: PodView, node: ReadOnlyTree) -> NodeContext:
        in_host_network = bool(pod.object["spec"].get("hostNetwork"))
        has_one = bool((pod.object.get("status") or {}).get("podIP"))
        return NodeContext(
            ip=self.ip_of(pod.node),
            pod_ips=() if in_host_network or has_one else self.pod_ips(pod.uid, pod.node),
            resources=NodeResources(
                allocatable=lambda: _allocatable(node), used=lambda: self._used_beside(pod)
            ),
            details=self._details,
        )

    def _used_beside(self, pod: PodView) -> Mapping[str, Quantity]:
        """The requests of the other pods, without those that cannot be parsed."""
        others = self._pods.by_index(BY_NODE, pod.node)
        return total_requests(
            other.object
            for other in others
            if other.uid != pod.uid and not other.is_terminal and _is_readable(other)
        )


def ranges_of(node: ReadOnlyTree) -> tuple[str, ...]:
    return tuple((node.get("spec") or {}).get("podCIDRs") or ())


def _is_readable(pod: PodView) -> bool:
    try:
        total_requests([pod.object])
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        LOG.debug("the requests of pod %s cannot be read: %s", pod.key, error)
        return False
    return True


def _allocatable(node: ReadOnlyTree) -> Mapping[str, Quantity]:
    amounts = (node.get("status") or {}).get("allocatable") or {}
    return {name: quantity.from_json(amount) for name, amount in amounts.items()}
