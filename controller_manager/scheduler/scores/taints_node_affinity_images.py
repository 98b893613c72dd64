"""Score nodes by taints with PreferNoSchedule, preferred node affinity, and local images.

Upstream: plugins/tainttoleration, nodeaffinity, imagelocality.
"""

import math
from collections.abc import Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.node_selectors import matches_term
from mockube.controller_manager.workloads.tolerations import tolerates

from .score import MAX_NODE_SCORE, normalize_scores

_MEGABYTE: Final = 1024 * 1024
_MIN_IMAGE_BYTES: Final = 23 * _MEGABYTE
_MAX_IMAGE_BYTES: Final = 1000 * _MEGABYTE


def node_affinity_score(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[int] | None:
    affinity = pod.affinity.get("nodeAffinity") or {}
    preferred: Sequence[ReadOnlyTree] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    if not preferred:
        return None
    raw = [sum(term["weight"] for term in preferred if _matches_preference(term, node)) for node in nodes]
    return normalize_scores(raw)


def _matches_preference(preference: ReadOnlyTree, node: NodeInfo) -> bool:
    return matches_term(preference["preference"], node.node)


def taint_toleration_score(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[int] | None:
    raw = [sum(_is_intolerable(pod, taint) for taint in node.taints) for node in nodes]
    return normalize_scores(raw, less_is_better=True) if any(raw) else None


def _is_intolerable(pod: PodInfo, taint: ReadOnlyTree) -> bool:
    return taint["effect"] == "PreferNoSchedule" and not tolerates(pod.spec, taint)


def image_locality(pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[int] | None:
    """Prefer nodes with the pod's images. An image on few nodes counts less, so that not all pods are scheduled there."""
    images, count = _images_of(pod, snapshot)
    if not images or not any(node.images for node in nodes):
        return None
    values = {image: _scaled_size(image, snapshot) for image in images}
    maximum = _MAX_IMAGE_BYTES * count
    raw = [sum(values[image] for image in images if image in node.images) for node in nodes]
    return [
        MAX_NODE_SCORE
        * (min(max(value, _MIN_IMAGE_BYTES), maximum) - _MIN_IMAGE_BYTES)
        // (maximum - _MIN_IMAGE_BYTES)
        for value in raw
    ]


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
    sizes = [node.images[image] for node in snapshot.nodes if image in node.images]
    # An image has the size that the first node reports.
    return math.trunc(sizes[0] * (len(sizes) / len(snapshot.nodes))) if sizes else 0
