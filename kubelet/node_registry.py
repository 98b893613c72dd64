"""The simulated nodes, their addresses, and the addresses of their pods. It reads caches and writes nothing."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.component_helpers.pod_requests import Amounts, amounts, pod_requests
from mockube.client.podview import PodView

from . import addresses, node_objects
from .addresses import NumberedNodeNetwork, PodAddresses, PodNetwork
from .pod_lifecycle.pod import NodeContext
from .pod_lifecycle.resize import NodeResources, allocated_spec
from .resizing import node_number
from .volumes.host_paths import path_type

LOG = logging.getLogger(__name__)

_SERVER_LIMITS_RESIZES_SINCE: Final = 36
"""The number of the first minor release whose API server refuses resizes beyond the capacity of the node."""


class NodeRegistry:
    def __init__(
        self,
        nodes: Lister[ReadOnlyTree],
        pods: Lister[PodView],
        *,
        details: bool,
        waits_for_pod_cidrs: bool = False,
        written_type: Callable[[str, str], str] = lambda *_: "",
    ) -> None:
        """`written_type` returns the type of a path that containers have written on a node; "" if there is none.

        `waits_for_pod_cidrs`: a controller allocates each node's podCIDR, and pods get no address before that.
        """
        self._written_type = written_type
        self._nodes = nodes
        self._waits_for_pod_cidrs = waits_for_pod_cidrs
        self._pods = pods
        self._details = details
        self._foreign_numbers: dict[str, int] = {}
        self.addresses = PodAddresses()

    def active_node(self, name: str) -> ReadOnlyTree | None:
        """Return the node of a name; None unless it is simulated and its kubelet is active."""
        node = self._nodes.get("", name)
        return node if node is not None and node_objects.has_active_kubelet(node) else None

    def node_with_kubelet(self, name: str) -> ReadOnlyTree | None:
        """Return the node of a name; None unless it is simulated and its kubelet runs, if only without a container runtime."""
        node = self._nodes.get("", name)
        return node if node is not None and node_objects.runs_kubelet(node) else None

    def number_of(self, name: str) -> int:
        """Return the number of a node's address, or in its name; other nodes are numbered from `NODES_WITH_BLOCKS` down."""
        node = self._nodes.get("", name)
        number = addresses.number_of_address(node_objects.internal_ip(node)) if node else 0
        return (
            number
            or node_number(name)
            or self._foreign_numbers.setdefault(
                name, addresses.NODES_WITH_BLOCKS - len(self._foreign_numbers)
            )
        )

    def ip_of(self, name: str) -> str:
        node = self._nodes.get("", name)
        return (node_objects.internal_ip(node) if node else "") or addresses.node_address(
            self.number_of(name)
        )

    def lacks_pod_cidr(self, node: ReadOnlyTree) -> bool:
        return self._waits_for_pod_cidrs and not pod_cidrs_of(node)

    def pod_ip(self, uid: str, node: str) -> str:
        return self.addresses.allocate(uid, self._network_of(node))

    def pod_ips(self, uid: str, node: str) -> Sequence[str]:
        """Return the pod's addresses, one for each podCIDR of the node."""
        networks = addresses.pod_networks(pod_cidrs_of(self._nodes.get("", node) or {}))
        address = self.pod_ip(uid, node)
        return addresses.matching_addresses(address, networks) if len(networks) > 1 else (address,)

    def _network_of(self, name: str) -> PodNetwork:
        networks = addresses.pod_networks(pod_cidrs_of(self._nodes.get("", name) or {}))
        return networks[0] if networks else NumberedNodeNetwork(self.number_of(name))

    def context_of(self, pod: PodView, node: ReadOnlyTree) -> NodeContext:
        in_host_network = bool(pod.object["spec"].get("hostNetwork"))
        has_address = bool((pod.object.get("status") or {}).get("podIP"))
        return NodeContext(
            ip=self.ip_of(pod.node),
            pod_ips=() if in_host_network or has_address else self.pod_ips(pod.uid, pod.node),
            resources=NodeResources(
                allocatable=lambda: amounts((node.get("status") or {}).get("allocatable")),
                used=lambda: self._requests_of_others(pod),
                limits_resizes=node_objects.kubelet_minor(node) < _SERVER_LIMITS_RESIZES_SINCE,
            ),
            kubelet_minor=node_objects.kubelet_minor(node),
            details=self._details,
            path_type=lambda path: (
                path_type(path, node, self.objects_of_pods(pod.node)) or self._written_type(pod.node, path)
            ),
        )

    def objects_of_pods(self, node: str) -> Iterator[ReadOnlyTree]:
        return (pod.object for pod in self._pods.by_index(BY_NODE, node))

    def other_host_pods(self, pod: PodView) -> Iterator[ReadOnlyTree]:
        """Yield the other pods that are in the network of a pod's node."""
        for other in self._pods.by_index(BY_NODE, pod.node):
            if other.object["spec"].get("hostNetwork") and not other.is_terminal and other.uid != pod.uid:
                yield other.object

    def _requests_of_others(self, pod: PodView) -> Amounts:
        """Return the sum of the allocated requests of the node's other pods, without those that cannot be parsed."""
        total = Amounts()
        for other in self._pods.by_index(BY_NODE, pod.node):
            if other.uid != pod.uid and not other.is_terminal:
                total += _allocated_requests(other)
        return total


def pod_cidrs_of(node: ReadOnlyTree) -> tuple[str, ...]:
    return tuple((node.get("spec") or {}).get("podCIDRs") or ())


def _allocated_requests(pod: PodView) -> Amounts:
    try:
        return pod_requests(allocated_spec(pod.object))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        LOG.debug("the requests of pod %s cannot be read: %s", pod.key, error)
        return Amounts()
