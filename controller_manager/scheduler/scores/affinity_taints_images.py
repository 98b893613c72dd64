"""Nodes that the pod prefers, and nodes that would rather not have it.

Upstream: plugins/nodeaffinity, tainttoleration, imagelocality.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.scheduler.affinity_terms import Term
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.scores.score import MAX_NODE_SCORE, normalize_scores
from mockube.controller_manager.workloads.node_selectors import term_holds
from mockube.controller_manager.workloads.tolerations import tolerates

_MEGABYTE: Final = 1024 * 1024
_MIN_IMAGE_BYTES: Final = 23 * _MEGABYTE
_MAX_IMAGE_BYTES: Final = 1000 * _MEGABYTE


def preferred_affinity(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[float] | None:
    affinity = pod.affinity.get("nodeAffinity") or {}
    preferred: Sequence[ReadOnlyTree] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    if not preferred:
        return None
    raw = [sum(term["weight"] for term in preferred if _matches_preference(term, node)) for node in nodes]
    return normalize_scores(raw)


def _matches_preference(preference: ReadOnlyTree, node: NodeInfo) -> bool:
    term = preference["preference"]
    is_empty = not term.get("matchExpressions") and not term.get("matchFields")
    return is_empty or term_holds(term, node.node)


def tolerated_taints(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[float] | None:
    raw = [sum(_is_in_the_way(pod, taint) for taint in node.taints) for node in nodes]
    return normalize_scores(raw, less_is_better=True) if any(raw) else None


def _is_in_the_way(pod: PodInfo, taint: ReadOnlyTree) -> bool:
    return taint["effect"] == "PreferNoSchedule" and not tolerates(pod.spec, taint)


def image_locality(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[float] | None:
    """Prefer nodes with the pod's images; an image on few nodes counts for less, so that pods do not all go there."""
    images = [container.get("image", "") for container in pod.spec.get("containers") or ()]
    sizes = [_sizes(node) for node in nodes]
    if not any(sizes):
        return None
    spread = {image: sum(image in image_sizes for image_sizes in sizes) / len(nodes) for image in images}
    maximum = _MAX_IMAGE_BYTES * len(images)
    raw = [sum(image_sizes.get(image, 0) * spread[image] for image in images) for image_sizes in sizes]
    return [
        MAX_NODE_SCORE
        * (min(max(value, _MIN_IMAGE_BYTES), maximum) - _MIN_IMAGE_BYTES)
        / (maximum - _MIN_IMAGE_BYTES)
        for value in raw
    ]


def _sizes(node: NodeInfo) -> dict[str, int]:
    images = (node.node.get("status") or {}).get("images") or ()
    return {name: image.get("sizeBytes", 0) for image in images for name in image.get("names") or ()}


_HARD_WEIGHT: Final = 1
"""Of an affinity that another pod requires: it holds for that pod whatever comes, and counts a little."""


def preferred_pod_affinity(
    pod: PodInfo, snapshot: ClusterSnapshot, feasible: Sequence[NodeInfo]
) -> list[float] | None:
    points: Counter[tuple[str, str]] = Counter()
    for node in snapshot.nodes:
        likes = bool(pod.terms.preferred_affinity or pod.terms.preferred_anti_affinity)
        for other in (node.pods if likes else node.with_terms).values():
            _add(points, pod, other, node, snapshot)
    if not points:
        return None
    raw = [sum(points[item] for item in node.labels.items()) for node in feasible]
    minimum, maximum = min(raw), max(raw)
    return [
        MAX_NODE_SCORE * (value - minimum) / (maximum - minimum) if maximum > minimum else 0.0
        for value in raw
    ]


def _add(
    points: Counter[tuple[str, str]], pod: PodInfo, other: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot
) -> None:
    def credit(terms: Iterable[Term], selected: PodInfo, sign: int) -> None:
        for term in terms:
            value = node.labels.get(term.topology_key)
            if value is not None and term.matches(selected.view, snapshot.labels_of_namespace):
                points[term.topology_key, value] += sign * (term.weight or _HARD_WEIGHT)

    credit(pod.terms.preferred_affinity, other, 1)
    credit(pod.terms.preferred_anti_affinity, other, -1)
    credit(other.terms.affinity, pod, 1)
    credit(other.terms.preferred_affinity, pod, 1)
    credit(other.terms.preferred_anti_affinity, pod, -1)
