"""Score nodes by the pod affinity terms of the pod and of existing pods. Upstream: plugins/interpodaffinity, scoring."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from mockube.controller_manager.scheduler.affinity_terms import AffinityTerm
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo

from .score import MAX_NODE_SCORE

_HARD_POD_AFFINITY_WEIGHT: Final = 1
"""The weight of a required affinity term of an existing pod; upstream's default of hardPodAffinityWeight."""


def pod_affinity_score(
    pod: PodInfo, snapshot: ClusterSnapshot, feasible: Sequence[NodeInfo]
) -> list[int] | None:
    term_scores: Counter[tuple[str, str]] = Counter()
    for node in snapshot.nodes:
        has_preferences = bool(pod.terms.preferred_affinity or pod.terms.preferred_anti_affinity)
        for other in (node.pods if has_preferences else node.pods_with_affinity).values():
            _add_term_scores(term_scores, pod, other, node, snapshot)
    if not term_scores:
        return None
    raw = [sum(term_scores[item] for item in node.labels.items()) for node in feasible]
    minimum, maximum = min(raw), max(raw)
    return [
        math.trunc(MAX_NODE_SCORE * ((value - minimum) / (maximum - minimum))) if maximum > minimum else 0
        for value in raw
    ]


def _add_term_scores(
    term_scores: Counter[tuple[str, str]],
    pod: PodInfo,
    other: PodInfo,
    node: NodeInfo,
    snapshot: ClusterSnapshot,
) -> None:
    def add_matching_terms(terms: Iterable[AffinityTerm], selected: PodInfo, sign: int) -> None:
        for term in terms:
            value = node.labels.get(term.topology_key)
            if value is not None and term.matches(selected.view, snapshot.labels_of_namespace):
                term_scores[term.topology_key, value] += sign * (term.weight or _HARD_POD_AFFINITY_WEIGHT)

    add_matching_terms(pod.terms.preferred_affinity, other, 1)
    add_matching_terms(pod.terms.preferred_anti_affinity, other, -1)
    add_matching_terms(other.terms.affinity, pod, 1)
    add_matching_terms(other.terms.preferred_affinity, pod, 1)
    add_matching_terms(other.terms.preferred_anti_affinity, pod, -1)
