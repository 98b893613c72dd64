"""The scheduler's cache of nodes and their pods, and the snapshot that one decision reads."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView

from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .volumes import Storage
from .workload_selector import Workloads

if TYPE_CHECKING:
    from .devices.claims import DeviceSnapshot


_Labels = tuple[tuple[str, str], ...]


class SchedulerCache:
    """The nodes by name, with the pods on them, including assumed ones; kube-scheduler's cache."""

    def __init__(self, gates: FeatureGates | None = None) -> None:
        self._gates = gates or FeatureGates()
        self._nodes: dict[str, NodeInfo] = {}
        self._node_names: dict[str, str] = {}
        """The names of nodes, by the uids of the pods on them."""
        self._label_counts: defaultdict[str, dict[_Labels, Counter[str]]] = defaultdict(dict)
        """The number of pods on each node by namespace and labels, without terminating ones."""

    def nodes(self) -> Sequence[NodeInfo]:
        return [node for node in self._nodes.values() if node.is_known]

    def node(self, name: str) -> NodeInfo | None:
        return self._nodes.get(name)

    def sizes(self) -> dict[str, int]:
        """Return the numbers of nodes and pods."""
        return {"nodes": len(self._nodes), "pods": len(self._node_names)}

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
        pod = pod_info.with_view(view) if pod_info else PodInfo.of(view, self._gates)
        if pod_info is not None and node_name == node and pod.counts_as(pod_info):
            self._nodes[node].replace(pod)
        else:
            self.assign_pod(pod, node)

    def assign_pod(self, pod: PodInfo, node: str) -> None:
        self.remove_pod(pod.view.uid)
        self._node_info(node).add(pod)
        self._node_names[pod.view.uid] = node
        self._count_labels(pod, node, 1)

    def remove_pod(self, uid: str) -> None:
        name = self._node_names.pop(uid, None)
        if name is not None:
            node = self._nodes[name]
            self._count_labels(node.pods[uid], name, -1)
            node.remove(uid)
            self._drop_if_empty(node)

    def matching_counts(self, namespace: str, selector: Selector) -> Counter[str]:
        """Return the number of matching pods by node, without terminating ones. An empty selector matches none."""
        counts: Counter[str] = Counter()
        if not selector.empty:
            for labels, by_node in self._label_counts.get(namespace, {}).items():
                if selector.matches(dict(labels)):
                    counts.update(by_node)
        return counts

    def _count_labels(self, pod: PodInfo, node: str, change: int) -> None:
        if pod.view.deleting:
            return
        labels = tuple(sorted(pod.view.labels.items()))
        by_labels = self._label_counts[pod.view.key.namespace]
        by_node = by_labels.setdefault(labels, Counter())
        by_node[node] += change
        if not by_node[node]:
            del by_node[node]
        if not by_node:
            del by_labels[labels]

    def _node_info(self, name: str) -> NodeInfo:
        if name not in self._nodes:
            self._nodes[name] = NodeInfo(name)
        return self._nodes[name]

    def _drop_if_empty(self, node: NodeInfo) -> None:
        if not node.is_known and not node.pods:
            self._nodes.pop(node.name, None)


def no_nominees(_: str) -> Sequence[PodInfo]:
    return ()


def no_counts(_: str, __: Selector) -> Counter[str]:
    return Counter()


class ClusterSnapshot(Struct, frozen=True, kw_only=True):
    """The state of the cluster that one scheduling decision reads."""

    nodes: Sequence[NodeInfo]
    labels_of_namespace: Callable[[str], Mapping[str, str]]
    storage: Storage
    devices: "DeviceSnapshot | None" = None
    """None before the first pod claims devices."""
    nominees: Callable[[str], Sequence[PodInfo]] = no_nominees
    """Returns the pods that are nominated for a node, by its name: they wait for the end of preempted pods."""
    matching_counts: Callable[[str, Selector], Counter[str]] = no_counts
    """Returns the number of pods in a namespace that a selector matches, by the name of their node."""
    workloads: Workloads | None = None
    gates: FeatureGates = field(default_factory=FeatureGates)
