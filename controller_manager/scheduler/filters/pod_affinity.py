"""Pods that must be with others, or apart from them. Upstream: plugins/interpodaffinity, filtering."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from mockube.controller_manager.scheduler.affinity_terms import Term
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.single_node import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo

_NOT_WITH: Final = Refusal(("node(s) didn't match pod affinity rules",), is_final=True)
_NOT_APART: Final = Refusal(("node(s) didn't match pod anti-affinity rules",))
_OTHERS_APART: Final = Refusal(("node(s) didn't satisfy existing pods anti-affinity rules",))

TopologyCounts = Counter[tuple[str, str]]
"""Numbers of pods by topology key and value."""


def inter_pod_affinity(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | None:
    existing_anti_affinity = _existing_anti_affinity_counts(pod, snapshot)
    if not pod.terms.affinity and not pod.terms.anti_affinity and not existing_anti_affinity:
        return None
    affinity_counts = _affinity_counts(pod.terms.affinity, snapshot)
    anti_affinity_counts = _anti_affinity_counts(pod.terms.anti_affinity, snapshot)
    is_first = not affinity_counts and _matches_itself(pod, snapshot)

    def check(node: NodeInfo) -> Refusal | None:
        if not _is_with(pod.terms.affinity, node, affinity_counts, is_first=is_first):
            return _NOT_WITH
        if any(_topology_pair(term, node) in anti_affinity_counts for term in pod.terms.anti_affinity):
            return _NOT_APART
        return _OTHERS_APART if any(item in existing_anti_affinity for item in node.labels.items()) else None

    return check


def _is_with(terms: Iterable[Term], node: NodeInfo, counts: TopologyCounts, *, is_first: bool) -> bool:
    """The first pod of a group with affinity to itself may run on any node with the topology labels."""
    return all(
        term.topology_key in node.labels and (is_first or _topology_pair(term, node) in counts)
        for term in terms
    )


def _matches_itself(pod: PodInfo, snapshot: ClusterSnapshot) -> bool:
    return all(term.matches(pod.view, snapshot.labels_of_namespace) for term in pod.terms.affinity)


def _affinity_counts(terms: tuple[Term, ...], snapshot: ClusterSnapshot) -> TopologyCounts:
    """Count pods that match all terms, by topology pair."""
    counts: TopologyCounts = Counter()
    for node in snapshot.nodes if terms else ():
        for other in node.pods.values():
            if all(term.matches(other.view, snapshot.labels_of_namespace) for term in terms):
                counts.update(_topology_pairs(terms, node))
    return counts


def _anti_affinity_counts(terms: tuple[Term, ...], snapshot: ClusterSnapshot) -> TopologyCounts:
    counts: TopologyCounts = Counter()
    for node in snapshot.nodes if terms else ():
        for other in node.pods.values():
            matching = [term for term in terms if term.matches(other.view, snapshot.labels_of_namespace)]
            counts.update(_topology_pairs(matching, node))
    return counts


def _existing_anti_affinity_counts(pod: PodInfo, snapshot: ClusterSnapshot) -> TopologyCounts:
    counts: TopologyCounts = Counter()
    for node in snapshot.nodes:
        for other in node.with_terms.values():
            matching = [
                term
                for term in other.terms.anti_affinity
                if term.matches(pod.view, snapshot.labels_of_namespace)
            ]
            counts.update(_topology_pairs(matching, node))
    return counts


def _topology_pairs(terms: Iterable[Term], node: NodeInfo) -> list[tuple[str, str]]:
    return [_topology_pair(term, node) for term in terms if term.topology_key in node.labels]


def _topology_pair(term: Term, node: NodeInfo) -> tuple[str, str]:
    return term.topology_key, node.labels.get(term.topology_key, "")
