"""Reject nodes by required pod affinity and anti-affinity. Upstream: plugins/interpodaffinity, filtering."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from mockube.controller_manager.scheduler.affinity_terms import AffinityTerm
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo

from .filter import Check, Rejection

_AFFINITY_NOT_SATISFIED: Final = Rejection(("node(s) didn't match pod affinity rules",), is_unresolvable=True)
_ANTI_AFFINITY_NOT_SATISFIED: Final = Rejection(("node(s) didn't match pod anti-affinity rules",))
_EXISTING_ANTI_AFFINITY_NOT_SATISFIED: Final = Rejection(
    ("node(s) didn't satisfy existing pods anti-affinity rules",)
)

TopologyCounts = Counter[tuple[str, str]]
"""Numbers of pods by topology key and value."""


def inter_pod_affinity(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | None:
    existing_anti_affinity = _existing_anti_affinity_counts(pod, snapshot)
    if not pod.terms.affinity and not pod.terms.anti_affinity and not existing_anti_affinity:
        return None
    affinity_counts = _affinity_counts(pod.terms.affinity, snapshot)
    anti_affinity_counts = _anti_affinity_counts(pod.terms.anti_affinity, snapshot)
    # The first pod of a group with affinity to itself would wait for ever (upstream: satisfyPodAffinity).
    is_first_of_group = not affinity_counts and all(
        term.matches(pod.view, snapshot.labels_of_namespace) for term in pod.terms.affinity
    )

    def check(node: NodeInfo) -> Rejection | None:
        if not _satisfies_affinity(
            pod.terms.affinity, node, affinity_counts, is_first_of_group=is_first_of_group
        ):
            return _AFFINITY_NOT_SATISFIED
        if any(_topology_pair(term, node) in anti_affinity_counts for term in pod.terms.anti_affinity):
            return _ANTI_AFFINITY_NOT_SATISFIED
        return (
            _EXISTING_ANTI_AFFINITY_NOT_SATISFIED
            if any(item in existing_anti_affinity for item in node.labels.items())
            else None
        )

    return check


def _satisfies_affinity(
    terms: Iterable[AffinityTerm], node: NodeInfo, counts: TopologyCounts, *, is_first_of_group: bool
) -> bool:
    """Return whether a node satisfies affinity terms. The first pod of a group fits any node with the topology labels."""
    return all(
        term.topology_key in node.labels and (is_first_of_group or _topology_pair(term, node) in counts)
        for term in terms
    )


def _affinity_counts(terms: tuple[AffinityTerm, ...], snapshot: ClusterSnapshot) -> TopologyCounts:
    """Count the pods that match all terms, by topology key and value."""
    counts: TopologyCounts = Counter()
    for node in snapshot.nodes if terms else ():
        for other in node.pods.values():
            if all(term.matches(other.view, snapshot.labels_of_namespace) for term in terms):
                counts.update(_topology_pairs(terms, node))
    return counts


def _anti_affinity_counts(terms: tuple[AffinityTerm, ...], snapshot: ClusterSnapshot) -> TopologyCounts:
    counts: TopologyCounts = Counter()
    for node in snapshot.nodes if terms else ():
        for other in node.pods.values():
            matching = [term for term in terms if term.matches(other.view, snapshot.labels_of_namespace)]
            counts.update(_topology_pairs(matching, node))
    return counts


def _existing_anti_affinity_counts(pod: PodInfo, snapshot: ClusterSnapshot) -> TopologyCounts:
    counts: TopologyCounts = Counter()
    for node in snapshot.nodes:
        for other in node.pods_with_affinity.values():
            matching = [
                term
                for term in other.terms.anti_affinity
                if term.matches(pod.view, snapshot.labels_of_namespace)
            ]
            counts.update(_topology_pairs(matching, node))
    return counts


def _topology_pairs(terms: Iterable[AffinityTerm], node: NodeInfo) -> list[tuple[str, str]]:
    return [_topology_pair(term, node) for term in terms if term.topology_key in node.labels]


def _topology_pair(term: AffinityTerm, node: NodeInfo) -> tuple[str, str]:
    return term.topology_key, node.labels.get(term.topology_key, "")
