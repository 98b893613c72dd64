"""Nodes near pods that the pod likes, or that like it. Upstream: plugins/interpodaffinity, scoring."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from mockube.controller_manager.scheduler.affinity_terms import Term
from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.scores.score import BEST

_HARD_WEIGHT: Final = 1
"""Of an affinity that another pod requires: it holds for that pod whatever comes, and counts a little."""


def liked_neighbours(pod: PodInfo, world: World, able: Sequence[NodeInfo]) -> list[float] | None:
    points: Counter[tuple[str, str]] = Counter()
    for node in world.nodes:
        likes = bool(pod.terms.rather_together or pod.terms.rather_apart)
        for other in (node.pods if likes else node.with_terms).values():
            _add(points, pod, other, node, world)
    if not points:
        return None
    raw = [sum(points[item] for item in node.labels.items()) for node in able]
    least, most = min(raw), max(raw)
    return [BEST * (value - least) / (most - least) if most > least else 0.0 for value in raw]


def _add(
    points: Counter[tuple[str, str]], pod: PodInfo, other: PodInfo, node: NodeInfo, world: World
) -> None:
    def credit(terms: Iterable[Term], meant: PodInfo, sign: int) -> None:
        for term in terms:
            value = node.labels.get(term.topology_key)
            if value is not None and term.means(meant.view, world.labels_of_namespace):
                points[term.topology_key, value] += sign * (term.weight or _HARD_WEIGHT)

    credit(pod.terms.rather_together, other, 1)
    credit(pod.terms.rather_apart, other, -1)
    credit(other.terms.together, pod, 1)
    credit(other.terms.rather_together, pod, 1)
    credit(other.terms.rather_apart, pod, -1)
