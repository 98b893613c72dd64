"""A node for scheduling decisions, with the pods on it and the sums of their requests.

Pure. Sums are updated pod by pod. A copy allows to evaluate hypothetical changes.
"""

import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.client.component_helpers.pod_requests import PODS, Amounts, amounts
from mockube.client.resources import Key

from .podinfo import PodInfo

_EMPTY: ReadOnlyTree = {}


class NodeInfo:
    """A node and its pods; kube-scheduler's NodeInfo. Pods may be known before their node is."""

    __slots__ = (
        "_shape",
        "_state",
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
        "signatures",
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
        self.signatures: Counter[tuple[str, bool]] = Counter()
        """The number of pods by signature, and by whether they are being deleted; without zeros."""
        self._shape = ""
        self._state: Hashable = None

    def set_node(self, node: ReadOnlyTree) -> None:
        status = node.get("status") or {}
        self.allocatable = amounts(status.get("allocatable") or status.get("capacity"))
        self.node, self.labels, self.images = node, meta.labels(node), _image_sizes(status)
        self._shape, self._state = _shape_of(node, self.labels, self.allocatable, self.images), None

    @property
    def state(self) -> Hashable:
        """Nodes of the same state are alike for every pod that does not ask for one by its name."""
        if self._state is None:
            self._state = (self._shape, frozenset(self.signatures.items()))
        return self._state

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
        self._count(pod, 1)
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
            self._count(pod, -1)
            self.requested.subtract(pod.requested)
            self.nonzero_requested.subtract(pod.nonzero_requested)

    def _count(self, pod: PodInfo, change: int) -> None:
        self._state = None
        alike = pod.signature, pod.view.deleting
        self.signatures[alike] += change
        if not self.signatures[alike]:
            del self.signatures[alike]
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
        other.signatures, other._shape = self.signatures.copy(), self._shape
        return other


def _image_sizes(status: ReadOnlyTree) -> Mapping[str, int]:
    return {
        name: image.get("sizeBytes", 0)
        for image in status.get("images") or ()
        for name in image.get("names") or ()
    }


def _shape_of(
    node: ReadOnlyTree, labels: Mapping[str, str], allocatable: Amounts, images: Mapping[str, int]
) -> str:
    """Return the text of what plugins read of a node, without its name."""
    spec = node.get("spec") or {}
    fields = (
        sorted(item for item in labels.items() if item[0] != LABEL_HOSTNAME),
        LABEL_HOSTNAME in labels,
        # Fields of wrong types are rejected later, when a pod is checked.
        [spec.get("taints"), spec.get("unschedulable")] if isinstance(spec, dict) else spec,
        sorted(allocatable.items()),
        sorted(images),
        (node.get("status") or {}).get("declaredFeatures"),
    )
    return sys.intern(repr(fields))  # many nodes share it
