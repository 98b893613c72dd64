"""Score nodes by taints with PreferNoSchedule, preferred node affinity, and local images.

Upstream: plugins/tainttoleration, nodeaffinity, imagelocality.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Final

from mockube.apimachinery.errors import FieldError, aggregate
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.node_selectors import check_expression, matches_term
from mockube.client.component_helpers.tolerations import tolerates
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.podinfo import PodInfo

from .score import MAX_NODE_SCORE, NothingCounted, normalize_scores, score_nodes

_MEGABYTE: Final = 1024 * 1024
_MIN_IMAGE_BYTES: Final = 23 * _MEGABYTE
_MAX_IMAGE_BYTES: Final = 1000 * _MEGABYTE


def node_affinity_score(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo], added: Sequence[ReadOnlyTree] = ()
) -> Sequence[int] | None:
    """Prefer nodes that match the preferences of the pod, and those that are `added` to all pods'."""
    preference = grouped_node_affinity(pod, snapshot, added)
    return None if preference is None else score_nodes(preference, nodes, snapshot)


class PreferredNodeAffinity(NothingCounted):
    """The part of a node is the sum of the weights of the terms that match it."""

    def __init__(self, terms: Sequence[ReadOnlyTree]) -> None:
        self._terms = terms
        self._errors = [*_errors_of(terms)]

    def part(self, node: NodeInfo, _: None) -> int:
        return sum(term["weight"] for term in self._terms if matches_term(term["preference"], node.node))

    def scores(self, parts: Sequence[int], _: Sequence[int], __: ClusterSnapshot) -> list[int]:
        if self._errors:
            raise PluginFailure(f'running PreScore plugin "NodeAffinity": {aggregate(self._errors)}')
        return normalize_scores(parts)


def _errors_of(terms: Sequence[ReadOnlyTree]) -> Iterator[FieldError]:
    for number, term in enumerate(terms):
        path = ROOT.index(number).child("matchExpressions")
        for index, one in enumerate(term["preference"].get("matchExpressions") or ()):
            yield from check_expression(
                one["key"], one["operator"], one.get("values") or (), path.index(index)
            )


def grouped_node_affinity(
    pod: PodInfo, _: ClusterSnapshot, added: Sequence[ReadOnlyTree] = ()
) -> PreferredNodeAffinity | None:
    affinity = pod.affinity.get("nodeAffinity") or {}
    terms = [*added, *(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ())]
    return PreferredNodeAffinity(terms) if terms else None


def taint_toleration_score(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]
) -> Sequence[int] | None:
    return score_nodes(TaintToleration(pod), nodes, snapshot)


class TaintToleration(NothingCounted):
    """The part of a node is the number of its taints that the pod would rather avoid."""

    def __init__(self, pod: PodInfo) -> None:
        self._pod = pod

    def part(self, node: NodeInfo, _: None) -> int:
        return sum(_is_intolerable(self._pod, taint) for taint in node.taints)

    def scores(self, parts: Sequence[int], _: Sequence[int], __: ClusterSnapshot) -> list[int] | None:
        return normalize_scores(parts, less_is_better=True) if any(parts) else None


def grouped_taint_toleration(pod: PodInfo, _: ClusterSnapshot) -> TaintToleration:
    return TaintToleration(pod)


def _is_intolerable(pod: PodInfo, taint: ReadOnlyTree) -> bool:
    return taint["effect"] == "PreferNoSchedule" and not tolerates(pod.spec, taint)


def image_locality(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]
) -> Sequence[int] | None:
    """Prefer nodes with the pod's images. An image on few nodes counts less, so that not all pods are scheduled there."""
    locality = grouped_image_locality(pod, snapshot)
    if locality is None or not any(node.images for node in nodes):
        return None
    return score_nodes(locality, nodes, snapshot)


class ImageLocality(NothingCounted):
    """The part of a node is which of the pod's images it has."""

    def __init__(self, images: Sequence[str], count: int) -> None:
        self._images = images
        self._maximum = _MAX_IMAGE_BYTES * count

    def part(self, node: NodeInfo, _: None) -> tuple[bool, ...]:
        return tuple(image in node.images for image in self._images)

    def scores(
        self, parts: Sequence[tuple[bool, ...]], _: Sequence[int], snapshot: ClusterSnapshot
    ) -> list[int]:
        sizes = [_scaled_size(image, snapshot) for image in self._images]
        return [self._score(sum(compress(sizes, part))) for part in parts]

    def _score(self, size: int) -> int:
        bounded = min(max(size, _MIN_IMAGE_BYTES), self._maximum)
        return MAX_NODE_SCORE * (bounded - _MIN_IMAGE_BYTES) // (self._maximum - _MIN_IMAGE_BYTES)


def grouped_image_locality(pod: PodInfo, snapshot: ClusterSnapshot) -> ImageLocality | None:
    images, count = _images_of(pod, snapshot)
    return ImageLocality(images, count) if images else None


def _images_of(pod: PodInfo, snapshot: ClusterSnapshot) -> tuple[list[str], int]:
    """Return the names of a pod's images, and how many count for the highest score."""
    containers: Sequence[ReadOnlyTree] = pod.spec.get("containers") or ()
    if not snapshot.gates.is_before("1.30"):
        containers = (*(pod.spec.get("initContainers") or ()), *containers)
    images = [container.get("image", "") for container in containers]
    volumes = [
        volume["image"].get("reference", "") for volume in pod.spec.get("volumes") or () if "image" in volume
    ]
    if snapshot.gates.is_before("1.36"):
        volumes = []
    count = len(images) + (0 if snapshot.gates.is_before("1.37") else len(volumes))
    return [_normalize_name(image) for image in (*images, *volumes)], count


def _normalize_name(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _scaled_size(image: str, snapshot: ClusterSnapshot) -> int:
    sizes = snapshot.image_sizes(image)
    # An image has the size that the first node reports.
    return math.trunc(next(iter(sizes.values())) * (len(sizes) / len(snapshot.nodes))) if sizes else 0
