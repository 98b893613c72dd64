"""The state of the cluster that one scheduling decision reads: nodes with the pods on them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.volumes import Storage

if TYPE_CHECKING:
    from mockube.controller_manager.scheduler.devices.claims import DeviceSnapshot


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

    def set_node(self, node: ReadOnlyTree) -> None:
        self._node_info(meta.name(node)).set_node(node)

    def remove_node(self, name: str) -> None:
        node = self._node_info(name)
        node.forget_node()
        self._drop_if_empty(node)

    def see(self, view: PodView, node: str) -> None:
        """A pod on a node, as it looks now."""
        node_name = self._node_of.get(view.uid)
        pod_info = None if node_name is None else self._nodes[node_name].pods[view.uid]
        self.place(pod_info.with_view(view) if pod_info else PodInfo.of(view), node)

    def place(self, pod: PodInfo, node: str) -> None:
        before = self._node_of.get(pod.view.uid)
        if before is not None and before != node:
            self.remove_pod(pod.view.uid)
        self._node_info(node).add(pod)
        self._node_of[pod.view.uid] = node

    def remove_pod(self, uid: str) -> None:
        name = self._node_of.pop(uid, None)
        if name is not None:
            node = self._nodes[name]
            node.remove(uid)
            self._drop_if_empty(node)

    def _node_info(self, name: str) -> NodeInfo:
        if name not in self._nodes:
            self._nodes[name] = NodeInfo(name)
        return self._nodes[name]

    def _drop_if_empty(self, node: NodeInfo) -> None:
        if not node.is_known and not node.pods:
            self._nodes.pop(node.name, None)


def no_nominees(_: str) -> Sequence[PodInfo]:
    return ()


class ClusterSnapshot(Struct, frozen=True, kw_only=True):
    nodes: Sequence[NodeInfo]
    labels_of_namespace: Callable[[str], Mapping[str, str]]
    storage: Storage
    devices: "DeviceSnapshot | None" = None
    """None as long as no pod has claimed any."""
    nominees: Callable[[str], Sequence[PodInfo]] = no_nominees
    """The pods that wait for victims on a node to go: by its name."""
