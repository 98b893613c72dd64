"""Nodes where one more pod would make the spread too uneven. Upstream: plugins/podtopologyspread, filtering."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.single_node import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.spreading import REQUIRED, Constraint, constraints_of

_UNEVEN: Final = Refusal(("node(s) didn't match pod topology spread constraints",))
_NO_LABEL: Final = Refusal(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), is_final=True
)


def topology_spread(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | None:
    constraints = constraints_of(pod, REQUIRED)
    if not constraints:
        return None
    counted = [(constraint, _counts(pod, constraint, constraints, snapshot)) for constraint in constraints]

    def check(node: NodeInfo) -> Refusal | None:
        for constraint, counts in counted:
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return _NO_LABEL
            minimum = min(counts.values(), default=0) if len(counts) >= constraint.min_domains else 0
            itself = constraint.selector.matches(pod.view.labels)
            if counts[value] + itself - minimum > constraint.max_skew:
                return _UNEVEN
        return None

    return check


def _counts(
    pod: PodInfo, constraint: Constraint, constraints: Sequence[Constraint], snapshot: ClusterSnapshot
) -> Counter[str]:
    """Of each domain; nodes that lack a label of any constraint are in none."""
    counts: Counter[str] = Counter()
    for node in snapshot.nodes:
        if all(other.topology_key in node.labels for other in constraints) and constraint.counts_in(
            pod, node
        ):
            counts[node.labels[constraint.topology_key]] += constraint.count(pod, node)
    return counts
