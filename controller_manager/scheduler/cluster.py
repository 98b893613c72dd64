"""The scheduler's cache of nodes and their pods, and the snapshot that one decision reads."""

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


class SchedulerCache:
    """The nodes by name, with the pods on them, including assumed ones; kube-scheduler's cache."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._node_names: dict[str, str] = {}
        """The names of nodes, by the uids of the pods on them."""

    def nodes(self) -> Sequence[NodeInfo]:
        return [node for node in self._nodes.values() if node.is_known]

    def node(self, name: str) -> NodeInfo | None:
        return self._nodes.get(name)

    def has_pod(self, uid: str) -> bool:
        return uid in self._node_names

    def set_node(self, node: ReadOnlyTree) -> None:
        self._node_info(meta.name(node)).set_node(node)

    def remove_node(self, name: str) -> None:
        node = self._node_info(name)
        node.forget_node()
        self._drop_if_empty(node)

    def update_pod(self, view: PodView, node: str) -> None:
        """Add or update a pod on a node, in its current state."""
        node_name = self._node_names.get(view.uid)
        pod_info = None if node_name is None else self._nodes[node_name].pods[view.uid]
        self.assign_pod(pod_info.with_view(view) if pod_info else PodInfo.of(view), node)

    def assign_pod(self, pod: PodInfo, node: str) -> None:
        old_node = self._node_names.get(pod.view.uid)
        if old_node is not None and old_node != node:
            self.remove_pod(pod.view.uid)
        self._node_info(node).add(pod)
        self._node_names[pod.view.uid] = node

    def remove_pod(self, uid: str) -> None:
        name = self._node_names.pop(uid, None)
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
    """The state of the cluster that one scheduling decision reads."""

    nodes: Sequence[NodeInfo]
    labels_of_namespace: Callable[[str], Mapping[str, str]]
    storage: Storage
    devices: "DeviceSnapshot | None" = None
    """None before the first pod claims devices."""
    nominees: Callable[[str], Sequence[PodInfo]] = no_nominees
    """Returns the pods that are nominated for a node, by its name: they wait for the end of preempted pods."""
