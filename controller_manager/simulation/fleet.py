"""All simulated nodes as the simulation sees them: which they are, where they are, and who has which address there.

Reads caches; writes nothing.
"""

from collections.abc import Mapping

from apimachinery import quantity
from apimachinery.quantity import Quantity
from controller_manager.indexes import BY_NODE
from controller_manager.runtime.caches import Lister
from controller_manager.runtime.resource import Tree
from controller_manager.simulation.addresses import MOST_NODES, PodAddresses, node_address
from controller_manager.simulation.life.pod_life import Home
from controller_manager.simulation.life.resize import Room, requested
from controller_manager.simulation.node_objects import internal_ip, is_silent, is_simulated
from controller_manager.simulation.resizing import number_in
from controller_manager.workloads.podview import PodView


class Fleet:
    def __init__(self, nodes: Lister[Tree], pods: Lister[PodView], *, details: bool) -> None:
        self._nodes = nodes
        self._pods = pods
        self._details = details
        self._strangers: dict[str, int] = {}
        self.addresses = PodAddresses()

    def node_at_work(self, name: str) -> Tree | None:
        """The node of that name, if it is simulated and not cut off."""
        node = self._nodes.get("", name)
        return node if node is not None and is_simulated(node) and not is_silent(node) else None

    def number_of(self, name: str) -> int:
        """Of its own nodes that in the name; nodes that others made are counted from the end, as they are met."""
        return number_in(name) or self._strangers.setdefault(name, MOST_NODES - len(self._strangers))

    def ip_of(self, name: str) -> str:
        node = self._nodes.get("", name)
        return (internal_ip(node) if node else "") or node_address(self.number_of(name))

    def pod_ip(self, uid: str, node: str) -> str:
        return self.addresses.of(uid, self.number_of(node))

    def home_of(self, pod: PodView, node: Tree) -> Home:
        in_host_network = bool(pod.object["spec"].get("hostNetwork"))
        has_one = bool((pod.object.get("status") or {}).get("podIP"))
        return Home(
            ip=self.ip_of(pod.node),
            pod_ip="" if in_host_network or has_one else self.pod_ip(pod.uid, pod.node),
            room=Room(allocatable=lambda: _allocatable(node), used=lambda: self._used_beside(pod)),
            details=self._details,
        )

    def _used_beside(self, pod: PodView) -> Mapping[str, Quantity]:
        others = self._pods.by_index(BY_NODE, pod.node)
        return requested(other.object for other in others if other.uid != pod.uid and not other.is_terminal)


def _allocatable(node: Tree) -> Mapping[str, Quantity]:
    amounts = (node.get("status") or {}).get("allocatable") or {}
    return {name: quantity.from_json(amount) for name, amount in amounts.items()}
