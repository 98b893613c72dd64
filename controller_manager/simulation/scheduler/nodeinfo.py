"""A node as the scheduler weighs it: what it has, what runs on it, and what is left.

Pure data that is kept up to date pod by pod. A copy can be taken to try what would be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from apimachinery import meta
from controller_manager.runtime.resource import Tree
from controller_manager.simulation.scheduler.amounts import PODS, Amounts, amounts
from controller_manager.simulation.scheduler.podinfo import PodInfo

_EMPTY: Tree = {}


class NodeInfo:
    """The node itself may be unknown still, while pods on it are known."""

    __slots__ = ("allocatable", "name", "node", "pods", "requested", "weighed")

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Tree = _EMPTY
        self.allocatable: Amounts = Counter()
        self.pods: dict[str, PodInfo] = {}
        self.requested: Amounts = Counter()
        self.weighed: Amounts = Counter()

    def set_node(self, node: Tree) -> None:
        self.node = node
        status = node.get("status") or {}
        self.allocatable = amounts(status.get("allocatable") or status.get("capacity"))

    def forget_node(self) -> None:
        self.node, self.allocatable = _EMPTY, Counter()

    @property
    def is_known(self) -> bool:
        return self.node is not _EMPTY

    @property
    def labels(self) -> Mapping[str, str]:
        return meta.labels(self.node)

    @property
    def taints(self) -> Sequence[Tree]:
        return (self.node.get("spec") or {}).get("taints") or ()

    @property
    def is_unschedulable(self) -> bool:
        return (self.node.get("spec") or {}).get("unschedulable") is True

    @property
    def most_pods(self) -> int:
        return self.allocatable[PODS]

    def add(self, pod: PodInfo) -> None:
        self.remove(pod.view.uid)
        self.pods[pod.view.uid] = pod
        self.requested.update(pod.requested)
        self.weighed.update(pod.weighed)

    def remove(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.requested.subtract(pod.requested)
            self.weighed.subtract(pod.weighed)

    def copy(self) -> "NodeInfo":
        other = NodeInfo(self.name)
        other.node, other.allocatable, other.pods = self.node, self.allocatable, dict(self.pods)
        other.requested, other.weighed = self.requested.copy(), self.weighed.copy()
        return other
