"""A node as the scheduler weighs it: what it has, what runs on it, and what is left.

Pure data that is kept up to date pod by pod. A copy can be taken to try what would be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.pod_requests import PODS, Amounts, amounts

_EMPTY: ReadOnlyTree = {}


class NodeInfo:
    """The node itself may be unknown still, while pods on it are known."""

    __slots__ = (
        "allocatable",
        "by_owner",
        "labels",
        "name",
        "node",
        "pods",
        "requested",
        "weighed",
        "with_terms",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: ReadOnlyTree = _EMPTY
        self.labels: Mapping[str, str] = {}
        self.allocatable: Amounts = Counter()
        self.pods: dict[str, PodInfo] = {}
        self.with_terms: dict[str, PodInfo] = {}
        """Those of the pods with affinity or anti-affinity terms."""
        self.by_owner: Counter[str] = Counter()
        self.requested: Amounts = Counter()
        self.weighed: Amounts = Counter()

    def set_node(self, node: ReadOnlyTree) -> None:
        status = node.get("status") or {}
        self.allocatable = amounts(status.get("allocatable") or status.get("capacity"))
        self.node, self.labels = node, meta.labels(node)

    def forget_node(self) -> None:
        self.set_node(_EMPTY)

    @property
    def is_known(self) -> bool:
        return self.node is not _EMPTY

    @property
    def taints(self) -> Sequence[ReadOnlyTree]:
        return (self.node.get("spec") or {}).get("taints") or ()

    @property
    def is_unschedulable(self) -> bool:
        return (self.node.get("spec") or {}).get("unschedulable") is True

    @property
    def max_pods(self) -> int:
        return self.allocatable[PODS]

    def add(self, pod: PodInfo) -> None:
        self.remove(pod.view.uid)
        self.pods[pod.view.uid] = pod
        if pod.terms:
            self.with_terms[pod.view.uid] = pod
        self.by_owner[pod.view.owner_uid] += 1
        self.requested.update(pod.requested)
        self.weighed.update(pod.weighed)

    def remove(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.with_terms.pop(uid, None)
            self.by_owner[pod.view.owner_uid] -= 1
            self.requested.subtract(pod.requested)
            self.weighed.subtract(pod.weighed)

    def copy(self) -> "NodeInfo":
        other = NodeInfo(self.name)
        other.node, other.labels, other.allocatable = self.node, self.labels, self.allocatable
        other.pods, other.with_terms = dict(self.pods), dict(self.with_terms)
        other.by_owner = self.by_owner.copy()
        other.requested, other.weighed = self.requested.copy(), self.weighed.copy()
        return other
