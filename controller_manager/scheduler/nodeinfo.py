"""A node for scheduling decisions, with the pods on it and the sums of their requests.

Pure. Sums are updated pod by pod. A copy allows to evaluate hypothetical changes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.workloads.pod_requests import PODS, Amounts, amounts

from .podinfo import PodInfo

_EMPTY: ReadOnlyTree = {}


class NodeInfo:
    """A node and its pods; kube-scheduler's NodeInfo. Pods may be known before their node is."""

    __slots__ = (
        "allocatable",
        "claim_counts",
        "images",
        "labels",
        "name",
        "node",
        "nonzero_requested",
        "pods",
        "pods_with_affinity",
        "requested",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: ReadOnlyTree = _EMPTY
        self.labels: Mapping[str, str] = {}
        self.images: Mapping[str, int] = {}
        """The sizes in bytes of the images on the node, by each of their names."""
        self.allocatable: Amounts = Counter()
        self.pods: dict[str, PodInfo] = {}
        self.pods_with_affinity: dict[str, PodInfo] = {}
        """The pods with affinity or anti-affinity terms, by uid."""
        self.claim_counts: Counter[Key] = Counter()
        """The number of pods that use a claim; without a claim that no pod uses."""
        self.requested: Amounts = Counter()
        self.nonzero_requested: Amounts = Counter()

    def set_node(self, node: ReadOnlyTree) -> None:
        status = node.get("status") or {}
        self.allocatable = amounts(status.get("allocatable") or status.get("capacity"))
        self.node, self.labels, self.images = node, meta.labels(node), _image_sizes(status)

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
            self.pods_with_affinity[pod.view.uid] = pod
        self._count_claims(pod, 1)
        self.requested.update(pod.requested)
        self.nonzero_requested.update(pod.nonzero_requested)

    def replace(self, pod: PodInfo) -> None:
        """Replace a pod on the node by a later version that counts in the same way."""
        self.pods[pod.view.uid] = pod
        if pod.terms:
            self.pods_with_affinity[pod.view.uid] = pod

    def remove(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.pods_with_affinity.pop(uid, None)
            self._count_claims(pod, -1)
            self.requested.subtract(pod.requested)
            self.nonzero_requested.subtract(pod.nonzero_requested)

    def _count_claims(self, pod: PodInfo, change: int) -> None:
        for name in pod.claims:
            claim = Key(pod.view.key.namespace, name)
            self.claim_counts[claim] += change
            if not self.claim_counts[claim]:
                del self.claim_counts[claim]

    def copy(self) -> "NodeInfo":
        other = NodeInfo(self.name)
        other.node, other.labels, other.images = self.node, self.labels, self.images
        other.allocatable = self.allocatable
        other.pods, other.pods_with_affinity = dict(self.pods), dict(self.pods_with_affinity)
        other.claim_counts = self.claim_counts.copy()
        other.requested, other.nonzero_requested = self.requested.copy(), self.nonzero_requested.copy()
        return other


def _image_sizes(status: ReadOnlyTree) -> Mapping[str, int]:
    return {
        name: image.get("sizeBytes", 0)
        for image in status.get("images") or ()
        for name in image.get("names") or ()
    }
