"""Score nodes by the pod affinity terms of the pod and of existing pods. Upstream: plugins/interpodaffinity, scoring."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.scheduler.affinity_terms import HOST, AffinityTerm, TopologyCounts, without_hostname
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.args import InterPodAffinityArgs
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .score import MAX_NODE_SCORE

_DEFAULT_ARGS: Final = InterPodAffinityArgs()


def pod_affinity_score(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    feasible: Sequence[NodeInfo],
    args: InterPodAffinityArgs = _DEFAULT_ARGS,
) -> list[int] | None:
    if _is_skipped(pod, args):
        return None
    term_scores = _term_scores(pod, snapshot.nodes, snapshot, args)
    if not term_scores:
        return None
    return _normalize([sum(term_scores[item] for item in node.labels.items()) for node in feasible])


def _is_skipped(pod: PodInfo, args: InterPodAffinityArgs) -> bool:
    """Return whether the preferences of existing pods do not count, because the pod has none itself."""
    return args.ignore_preferred_terms_of_existing_pods and not _has_preferences(pod)


def _has_preferences(pod: PodInfo) -> bool:
    return bool(pod.terms.preferred_affinity or pod.terms.preferred_anti_affinity)


def _normalize(raw: Sequence[int]) -> list[int]:
    minimum, maximum = min(raw), max(raw)
    return [
        math.trunc(MAX_NODE_SCORE * ((value - minimum) / (maximum - minimum))) if maximum > minimum else 0
        for value in raw
    ]


def _term_scores(
    pod: PodInfo, nodes: Iterable[NodeInfo], snapshot: ClusterSnapshot, args: InterPodAffinityArgs
) -> TopologyCounts:
    """Return the weights of the terms that match, by topology key and value."""
    term_scores: TopologyCounts = Counter()
    has_preferences = _has_preferences(pod)
    for node in nodes:
        for other in (node.pods if has_preferences else node.pods_with_affinity).values():
            _add_term_scores(term_scores, pod, other, node, snapshot, args)
    return term_scores


def _add_term_scores(
    term_scores: TopologyCounts,
    pod: PodInfo,
    other: PodInfo,
    node: NodeInfo,
    snapshot: ClusterSnapshot,
    args: InterPodAffinityArgs,
) -> None:
    def add_matching_terms(terms: Iterable[AffinityTerm], selected: PodInfo, sign: int) -> None:
        for term in terms:
            value, weight = node.labels.get(term.topology_key), term.weight or args.hard_pod_affinity_weight
            if value is not None and weight and term.matches(selected.view, snapshot.labels_of_namespace):
                term_scores[term.topology_key, value] += sign * weight

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

    def __init__(
        self, pod: PodInfo, snapshot: ClusterSnapshot, keys: Iterable[str], args: InterPodAffinityArgs
    ) -> None:
        """`keys` are the topology keys of the terms of all pods."""
        self._pod, self._snapshot, self._args = pod, snapshot, args
        self._keys = sorted({*keys, *pod.terms.topology_keys} - {LABEL_HOSTNAME})
        self._term_scores: TopologyCounts = Counter()

    def part(self, node: NodeInfo, contribution: TopologyCounts | None) -> _Part:
        of_host = 0 if contribution is None else contribution[HOST]
        return _Part(tuple(map(node.labels.get, self._keys)), of_host)

    def contribution(self, node: NodeInfo) -> TopologyCounts | None:
        return without_hostname(_term_scores(self._pod, [node], self._snapshot, self._args)) or None

    def add(self, contribution: TopologyCounts, times: int) -> None:
        for pair, score in contribution.items():
            self._term_scores[pair] += score * times

    def scores(self, parts: Sequence[_Part], _: Sequence[int], __: ClusterSnapshot) -> Sequence[int] | None:
        return _normalize([self._weight(part) for part in parts])

    def _weight(self, part: _Part) -> int:
        pairs = zip(self._keys, part.values, strict=True)
        return part.weight_of_host + sum(
            self._term_scores[key, value] for key, value in pairs if value is not None
        )


def grouped_pod_affinity_score(
    pod: PodInfo, snapshot: ClusterSnapshot, args: InterPodAffinityArgs = _DEFAULT_ARGS
) -> GroupedPodAffinityScore | None:
    keys = snapshot.topology_keys
    if _is_skipped(pod, args) or not (keys or pod.terms):
        return None
    return GroupedPodAffinityScore(pod, snapshot, keys, args)
