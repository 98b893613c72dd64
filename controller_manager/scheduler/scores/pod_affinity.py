"""Score nodes by the pod affinity terms of the pod and of existing pods. Upstream: plugins/interpodaffinity, scoring."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.wellknown import LABEL_HOSTNAME
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
    term_scores = _term_scores(pod, snapshot.nodes, snapshot)
    if not term_scores:
        return None
    return _normalize([sum(term_scores[item] for item in node.labels.items()) for node in feasible])


def _normalize(raw: Sequence[int]) -> list[int]:
    minimum, maximum = min(raw), max(raw)
    return [
        math.trunc(MAX_NODE_SCORE * ((value - minimum) / (maximum - minimum))) if maximum > minimum else 0
        for value in raw
    ]


def _term_scores(
    pod: PodInfo, nodes: Iterable[NodeInfo], snapshot: ClusterSnapshot
) -> Counter[tuple[str, str]]:
    """Return the weights of the terms that match, by topology key and value."""
    term_scores: Counter[tuple[str, str]] = Counter()
    has_preferences = bool(pod.terms.preferred_affinity or pod.terms.preferred_anti_affinity)
    for node in nodes:
        for other in (node.pods if has_preferences else node.pods_with_affinity).values():
            _add_term_scores(term_scores, pod, other, node, snapshot)
    return term_scores


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


# --- the same for groups of nodes


class _Part(NamedTuple):
    """What of a node decides: its labels for topology keys, and the weights of the terms for its host."""

    values: tuple[str | None, ...]
    weight_of_host: int


class GroupedPodAffinityScore:
    """The score for groups of nodes."""

    def __init__(self, pod: PodInfo, snapshot: ClusterSnapshot, keys: Iterable[str]) -> None:
        """`keys` are the topology keys of the terms of all pods."""
        self._pod, self._snapshot = pod, snapshot
        self._keys = sorted({*keys, *pod.terms.topology_keys} - {LABEL_HOSTNAME})
        self._term_scores: Counter[tuple[str, str]] = Counter()

    def part(self, node: NodeInfo) -> _Part:
        own_scores = _term_scores(self._pod, [node], self._snapshot)
        of_host = sum(score for (key, _), score in own_scores.items() if key == LABEL_HOSTNAME)
        return _Part(tuple(map(node.labels.get, self._keys)), of_host)

    def contribution(self, node: NodeInfo) -> Counter[tuple[str, str]] | None:
        own_scores = _term_scores(self._pod, [node], self._snapshot)
        return (
            Counter({pair: score for pair, score in own_scores.items() if pair[0] != LABEL_HOSTNAME}) or None
        )

    def add(self, contribution: Counter[tuple[str, str]], times: int) -> None:
        for pair, score in contribution.items():
            self._term_scores[pair] += score * times

    def scores(self, parts: Sequence[_Part], _: Sequence[int], __: ClusterSnapshot) -> Sequence[int] | None:
        return _normalize([self._weight(part) for part in parts])

    def _weight(self, part: _Part) -> int:
        pairs = zip(self._keys, part.values, strict=True)
        return part.weight_of_host + sum(
            self._term_scores[key, value] for key, value in pairs if value is not None
        )


def grouped_pod_affinity_score(pod: PodInfo, snapshot: ClusterSnapshot) -> GroupedPodAffinityScore | None:
    keys = snapshot.topology_keys
    return GroupedPodAffinityScore(pod, snapshot, keys) if keys or pod.terms else None
