"""The nodes and the pods on them, as the scheduler believes them to be.

Fed by the caches' changes, and by the scheduler itself: a pod that it has decided on is assumed to be on its node
until the caches say so, or until it is forgotten because binding failed.
"""

from collections.abc import Sequence

from apimachinery import meta
from controller_manager.runtime.resource import Tree
from controller_manager.simulation.scheduler.nodeinfo import NodeInfo
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.workloads.podview import PodView


class Cluster:
    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._node_of: dict[str, str] = {}
        """By the uid of a pod."""

    def nodes(self) -> Sequence[NodeInfo]:
        return [node for node in self._nodes.values() if node.is_known]

    def node(self, name: str) -> NodeInfo | None:
        return self._nodes.get(name)

    def is_placed(self, uid: str) -> bool:
        return uid in self._node_of

    def set_node(self, node: Tree) -> None:
        self._at(meta.name(node)).set_node(node)

    def remove_node(self, name: str) -> None:
        node = self._at(name)
        node.forget_node()
        self._drop_if_empty(node)

    def see(self, view: PodView, node: str) -> None:
        """A pod on a node, as it looks now."""
        at = self._node_of.get(view.uid)
        known = None if at is None else self._nodes[at].pods[view.uid]
        self.place(known.seen_as(view) if known else PodInfo.of(view), node)

    def place(self, pod: PodInfo, node: str) -> None:
        before = self._node_of.get(pod.view.uid)
        if before is not None and before != node:
            self.remove_pod(pod.view.uid)
        self._node_of[pod.view.uid] = node
        self._at(node).add(pod)

    def remove_pod(self, uid: str) -> None:
        name = self._node_of.pop(uid, None)
        if name is not None:
            node = self._nodes[name]
            node.remove(uid)
            self._drop_if_empty(node)

    def _at(self, name: str) -> NodeInfo:
        if name not in self._nodes:
            self._nodes[name] = NodeInfo(name)
        return self._nodes[name]

    def _drop_if_empty(self, node: NodeInfo) -> None:
        if not node.is_known and not node.pods:
            self._nodes.pop(node.name, None)
