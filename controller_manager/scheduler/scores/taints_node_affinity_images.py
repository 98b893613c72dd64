"""Score nodes by taints with PreferNoSchedule, preferred node affinity, and local images.

Upstream: plugins/tainttoleration, nodeaffinity, imagelocality.
"""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.scores.score import MAX_NODE_SCORE, normalize_scores
from mockube.controller_manager.workloads.node_selectors import matches_term
from mockube.controller_manager.workloads.tolerations import tolerates

_MEGABYTE: Final = 1024 * 1024
_MIN_IMAGE_BYTES: Final = 23 * _MEGABYTE
_MAX_IMAGE_BYTES: Final = 1000 * _MEGABYTE


def node_affinity_score(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[float] | None:
    affinity = pod.affinity.get("nodeAffinity") or {}
    preferred: Sequence[ReadOnlyTree] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    if not preferred:
        return None
    raw = [sum(term["weight"] for term in preferred if _matches_preference(term, node)) for node in nodes]
    return normalize_scores(raw)


def _matches_preference(preference: ReadOnlyTree, node: NodeInfo) -> bool:
    term = preference["preference"]
    is_empty = not term.get("matchExpressions") and not term.get("matchFields")
    return is_empty or matches_term(term, node.node)


def taint_toleration_score(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[float] | None:
    raw = [sum(_is_intolerable(pod, taint) for taint in node.taints) for node in nodes]
    return normalize_scores(raw, less_is_better=True) if any(raw) else None


def _is_intolerable(pod: PodInfo, taint: ReadOnlyTree) -> bool:
    return taint["effect"] == "PreferNoSchedule" and not tolerates(pod.spec, taint)


def image_locality(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[float] | None:
    """Prefer nodes with the pod's images. An image on few nodes counts less, so that not all pods are scheduled there."""
    images = [container.get("image", "") for container in pod.spec.get("containers") or ()]
    sizes_by_node = [_image_sizes(node) for node in nodes]
    if not any(sizes_by_node):
        return None
    spread = {
        image: sum(image in image_sizes for image_sizes in sizes_by_node) / len(nodes) for image in images
    }
    maximum = _MAX_IMAGE_BYTES * len(images)
    raw = [
        sum(image_sizes.get(image, 0) * spread[image] for image in images) for image_sizes in sizes_by_node
    ]
    return [
        MAX_NODE_SCORE
        * (min(max(value, _MIN_IMAGE_BYTES), maximum) - _MIN_IMAGE_BYTES)
        / (maximum - _MIN_IMAGE_BYTES)
        for value in raw
    ]


def _image_sizes(node: NodeInfo) -> dict[str, int]:
    images = (node.node.get("status") or {}).get("images") or ()
    return {name: image.get("sizeBytes", 0) for image in images for name in image.get("names") or ()}
