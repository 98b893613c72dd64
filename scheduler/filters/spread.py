"""Reject nodes where a pod would exceed the maximum skew. Upstream: plugins/podtopologyspread, filtering."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.args import PodTopologySpreadArgs
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.spreading import DEFAULT_ARGS, REQUIRED, Constraint, constraints_of

from .filter import Check, Rejection

_SKEW_EXCEEDED: Final = Rejection(("node(s) didn't match pod topology spread constraints",))
_MISSING_LABEL: Final = Rejection(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), is_unresolvable=True
)


def topology_spread(
    pod: PodInfo, snapshot: ClusterSnapshot, args: PodTopologySpreadArgs = DEFAULT_ARGS
) -> Check | None:
    constraints = constraints_of(pod, REQUIRED, snapshot.workloads, args)
    if not constraints:
        return None
    constraint_counts = [
        (constraint, _counts(pod, constraint, constraints, snapshot)) for constraint in constraints
    ]

    def check(node: NodeInfo) -> Rejection | None:
        for constraint, counts in constraint_counts:
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return _MISSING_LABEL
            # With fewer domains than minDomains, a domain without pods is still to come.
            minimum = min(counts.values(), default=0) if len(counts) >= constraint.min_domains else 0
            self_match = constraint.selector.matches(pod.view.labels)
            if counts[value] + self_match - minimum > constraint.max_skew:
                return _SKEW_EXCEEDED
        return None

    return check


def _counts(
    pod: PodInfo, constraint: Constraint, constraints: Sequence[Constraint], snapshot: ClusterSnapshot
) -> Counter[str]:
    """Count matching pods in each domain, without nodes that lack the label of any constraint."""
    counts: Counter[str] = Counter()
    for node in snapshot.nodes:
        if all(other.topology_key in node.labels for other in constraints) and constraint.counts_in(
            pod, node
        ):
            counts[node.labels[constraint.topology_key]] += constraint.count(pod, node)
    return counts


# --- the same for groups of nodes


class _Domains:
    """The nodes and matching pods of the domains of a topology key."""

    def __init__(self) -> None:
        self._nodes: Counter[str] = Counter()
        self._pods: Counter[str] = Counter()

    def add(self, domain: str, pods: int, times: int) -> None:
        self._nodes[domain] += times
        self._pods[domain] += pods * times
        if not self._nodes[domain]:
            del self._nodes[domain], self._pods[domain]

    def pods(self, domain: str, _: int) -> int:
        return self._pods[domain]

    def minimum(self, min_domains: int) -> int:
        return (
            min((self._pods[domain] for domain in self._nodes), default=0)
            if len(self._nodes) >= min_domains
            else 0
        )


class _Hosts:
    """The matching pods of nodes, each of which is a domain: the number of nodes by their number of pods."""

    def __init__(self) -> None:
        self._nodes: Counter[int] = Counter()

    def add(self, _: str, pods: int, times: int) -> None:
        self._nodes[pods] += times
        if not self._nodes[pods]:
            del self._nodes[pods]

    @staticmethod
    def pods(_: str, pods: int) -> int:
        return pods

    def minimum(self, min_domains: int) -> int:
        return min(self._nodes, default=0) if self._nodes.total() >= min_domains else 0


_Value = tuple[str, int] | None
"""The domain of a node, and its number of matching pods; None if it has no such label."""


class GroupedTopologySpread:
    """The filter for groups of nodes."""

    def __init__(self, pod: PodInfo, constraints: Sequence[Constraint]) -> None:
        self._pod = pod
        self._constraints = constraints
        self._counts = [_Hosts() if one.topology_key == LABEL_HOSTNAME else _Domains() for one in constraints]
        self._self_matches = [one.selector.matches(pod.view.labels) for one in constraints]

    def part(self, node: NodeInfo, contribution: Sequence[_Value]) -> tuple[_Value, ...]:
        return tuple(
            None
            if constraint.topology_key not in node.labels
            else contribution[index] or (_domain(constraint, node), 0)
            for index, constraint in enumerate(self._constraints)
        )

    def contribution(self, node: NodeInfo) -> Sequence[_Value]:
        """Return what each constraint counts of a node: of one without all labels nothing."""
        if not all(constraint.topology_key in node.labels for constraint in self._constraints):
            return [None] * len(self._constraints)
        return [
            (_domain(constraint, node), constraint.count(self._pod, node))
            if constraint.counts_in(self._pod, node)
            else None
            for constraint in self._constraints
        ]

    def add(self, contribution: Sequence[_Value], times: int) -> None:
        for counts, value in zip(self._counts, contribution, strict=True):
            if value is not None:
                counts.add(*value, times)

    def check(self) -> Callable[[Hashable], Rejection | None]:
        limits = [
            constraint.max_skew + counts.minimum(constraint.min_domains) - self_match
            for constraint, counts, self_match in zip(
                self._constraints, self._counts, self._self_matches, strict=True
            )
        ]

        def check(part: Any) -> Rejection | None:
            for counts, value, limit in zip(self._counts, part, limits, strict=True):
                if value is None:
                    return _MISSING_LABEL
                if counts.pods(*value) > limit:
                    return _SKEW_EXCEEDED
            return None

        return check


def grouped_topology_spread(
    pod: PodInfo, snapshot: ClusterSnapshot, args: PodTopologySpreadArgs = DEFAULT_ARGS
) -> GroupedTopologySpread | None:
    constraints = constraints_of(pod, REQUIRED, snapshot.workloads, args)
    return GroupedTopologySpread(pod, constraints) if constraints else None


def _domain(constraint: Constraint, node: NodeInfo) -> str:
    """Return the domain of a node; each host is one of its own, whose name does not matter."""
    key = constraint.topology_key
    return "" if key == LABEL_HOSTNAME else node.labels[key]
