"""Reject nodes by required pod affinity and anti-affinity. Upstream: plugins/interpodaffinity, filtering."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Final, NamedTuple

from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.scheduler.affinity_terms import HOST, AffinityTerm, TopologyCounts, without_hostname
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .filter import Check, Rejection

_AFFINITY_NOT_SATISFIED: Final = Rejection(("node(s) didn't match pod affinity rules",), is_unresolvable=True)
_ANTI_AFFINITY_NOT_SATISFIED: Final = Rejection(("node(s) didn't match pod anti-affinity rules",))
_EXISTING_ANTI_AFFINITY_NOT_SATISFIED: Final = Rejection(
    ("node(s) didn't satisfy existing pods anti-affinity rules",)
)


def inter_pod_affinity(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | None:
    existing_anti_affinity = _existing_anti_affinity_counts(pod, snapshot.nodes, snapshot)
    if not pod.terms.affinity and not pod.terms.anti_affinity and not existing_anti_affinity:
        return None
    affinity_counts = _affinity_counts(pod.terms.affinity, snapshot.nodes, snapshot)
    anti_affinity_counts = _anti_affinity_counts(pod.terms.anti_affinity, snapshot.nodes, snapshot)
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


def _affinity_counts(
    terms: tuple[AffinityTerm, ...], nodes: Iterable[NodeInfo], snapshot: ClusterSnapshot
) -> TopologyCounts:
    """Count the pods that match all terms, by topology key and value."""
    counts: TopologyCounts = Counter()
    for node in nodes if terms else ():
        for other in node.pods.values():
            if all(term.matches(other.view, snapshot.labels_of_namespace) for term in terms):
                counts.update(_topology_pairs(terms, node))
    return counts


def _anti_affinity_counts(
    terms: tuple[AffinityTerm, ...], nodes: Iterable[NodeInfo], snapshot: ClusterSnapshot
) -> TopologyCounts:
    counts: TopologyCounts = Counter()
    for node in nodes if terms else ():
        for other in node.pods.values():
            matching = [term for term in terms if term.matches(other.view, snapshot.labels_of_namespace)]
            counts.update(_topology_pairs(matching, node))
    return counts


def _existing_anti_affinity_counts(
    pod: PodInfo, nodes: Iterable[NodeInfo], snapshot: ClusterSnapshot
) -> TopologyCounts:
    counts: TopologyCounts = Counter()
    for node in nodes:
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


# --- the same for groups of nodes


class _NodeCounts(NamedTuple):
    """The pods of one node that count, without the name of its host; or those of all nodes."""

    affinity: TopologyCounts
    anti_affinity: TopologyCounts
    existing: TopologyCounts

    @classmethod
    def of(cls, pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot) -> "_NodeCounts":
        return cls(
            without_hostname(_affinity_counts(pod.terms.affinity, [node], snapshot)),
            without_hostname(_anti_affinity_counts(pod.terms.anti_affinity, [node], snapshot)),
            without_hostname(_existing_anti_affinity_counts(pod, [node], snapshot)),
        )

    def __bool__(self) -> bool:
        return any(self[:])


_NO_COUNTS: Final = _NodeCounts(Counter(), Counter(), Counter())


class _Part(NamedTuple):
    """What of a node decides: its labels for topology keys, and whether a pod on it matches terms for the host."""

    values: tuple[str | None, ...]
    host_affinity: bool
    host_anti_affinity: bool
    host_existing: bool


class GroupedPodAffinity:
    """The filter for groups of nodes."""

    def __init__(self, pod: PodInfo, snapshot: ClusterSnapshot, keys: Iterable[str]) -> None:
        """`keys` are the topology keys of the terms of all pods."""
        self._pod, self._snapshot = pod, snapshot
        self._keys = sorted({*keys, *pod.terms.topology_keys})
        self._counts = _NodeCounts(Counter(), Counter(), Counter())
        self._matches_itself = all(
            term.matches(pod.view, snapshot.labels_of_namespace) for term in pod.terms.affinity
        )

    def part(self, node: NodeInfo, contribution: _NodeCounts | None) -> _Part:
        counts = contribution or _NO_COUNTS
        values = (
            "" if key == LABEL_HOSTNAME and key in node.labels else node.labels.get(key) for key in self._keys
        )
        return _Part(tuple(values), *(HOST in one for one in counts))

    def contribution(self, node: NodeInfo) -> _NodeCounts | None:
        return _NodeCounts.of(self._pod, node, self._snapshot) or None

    def add(self, contribution: _NodeCounts, times: int) -> None:
        for totals, counts in zip(self._counts, contribution, strict=True):
            for pair, count in counts.items():
                totals[pair] += count * times
                if not totals[pair]:
                    del totals[pair]

    def check(self) -> Callable[[Hashable], Rejection | None]:
        is_first_of_group = not self._counts.affinity and self._matches_itself
        return lambda part: self._rejection(part, is_first_of_group=is_first_of_group)  # type: ignore[arg-type]

    def _rejection(self, part: _Part, *, is_first_of_group: bool) -> Rejection | None:
        labels = dict(zip(self._keys, part.values, strict=True))

        def has(counts: TopologyCounts, key: str, *, on_host: bool) -> bool:
            return on_host if key == LABEL_HOSTNAME else (key, labels[key] or "") in counts

        for term in self._pod.terms.affinity:
            key = term.topology_key
            if labels[key] is None or not (
                is_first_of_group or has(self._counts.affinity, key, on_host=part.host_affinity)
            ):
                return _AFFINITY_NOT_SATISFIED
        if any(
            has(self._counts.anti_affinity, term.topology_key, on_host=part.host_anti_affinity)
            for term in self._pod.terms.anti_affinity
        ):
            return _ANTI_AFFINITY_NOT_SATISFIED
        is_refused = any(
            value is not None and has(self._counts.existing, key, on_host=part.host_existing)
            for key, value in labels.items()
        )
        return _EXISTING_ANTI_AFFINITY_NOT_SATISFIED if is_refused else None


def grouped_pod_affinity(pod: PodInfo, snapshot: ClusterSnapshot) -> GroupedPodAffinity | None:
    keys = snapshot.topology_keys
    return GroupedPodAffinity(pod, snapshot, keys) if keys or pod.terms else None
