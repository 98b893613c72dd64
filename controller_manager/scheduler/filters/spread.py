"""Reject nodes where a pod would exceed the maximum skew. Upstream: plugins/podtopologyspread, filtering."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.spreading import REQUIRED, Constraint, constraints_of

from .filter import Check, Rejection

_SKEW_EXCEEDED: Final = Rejection(("node(s) didn't match pod topology spread constraints",))
_MISSING_LABEL: Final = Rejection(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), is_unresolvable=True
)


def topology_spread(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | None:
    constraints = constraints_of(pod, REQUIRED)
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
