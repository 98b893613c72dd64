"""Score nodes by how evenly a pod spreads matching pods. Upstream: plugins/podtopologyspread, scoring.

A pod without constraints is spread over hosts and zones with the other pods of its Services and of its controller.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Final

from mockube.apimachinery.wellknown import LABEL_HOSTNAME, LABEL_ZONE
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.spreading import (
    PREFERRED,
    Constraint,
    constraints_of,
    default_constraint,
)
from mockube.controller_manager.scheduler.workload_selector import selector_of_workloads

from .score import MAX_NODE_SCORE, round_half_up

_DEFAULT_CONSTRAINTS: Final = ((LABEL_HOSTNAME, 3), (LABEL_ZONE, 5))


def topology_spread_score(
    pod: PodInfo, snapshot: ClusterSnapshot, feasible: Sequence[NodeInfo]
) -> list[int] | None:
    constraints = _constraints(pod, snapshot)
    # The default constraints do not require the topology labels.
    has_own = bool(pod.spec.get("topologySpreadConstraints"))
    required_keys = [constraint.topology_key for constraint in constraints] if has_own else []

    def has_labels(node: NodeInfo) -> bool:
        return all(key in node.labels for key in required_keys)

    is_scored_by_node = [has_labels(node) for node in feasible]
    if not constraints or not any(is_scored_by_node):
        return None
    scored = [*compress(feasible, is_scored_by_node)]
    raw = [0.0] * len(feasible)
    for constraint in constraints:
        counts_by_node = snapshot.matching_counts(pod.view.key.namespace, constraint.selector)
        by_host = constraint.topology_key == LABEL_HOSTNAME
        if by_host:
            size, domains = len(scored), Counter[str]()
        else:
            size = len({node.labels.get(constraint.topology_key, "") for node in scored})
            nodes = [node for node in snapshot.nodes if node.name in counts_by_node and has_labels(node)]
            domains = _counts_by_domain(pod, constraint, nodes, counts_by_node)
        weight = math.log(size + 2)
        for index, node in enumerate(feasible):
            value = node.labels.get(constraint.topology_key)
            if value is not None and is_scored_by_node[index]:
                count = counts_by_node[node.name] if by_host else domains[value]
                raw[index] += count * weight + (constraint.max_skew - 1)
    return _normalize([round_half_up(value) for value in raw], is_scored_by_node)


def _constraints(pod: PodInfo, snapshot: ClusterSnapshot) -> Sequence[Constraint]:
    if pod.spec.get("topologySpreadConstraints"):
        return constraints_of(pod, PREFERRED)
    selector = None if snapshot.workloads is None else selector_of_workloads(pod, snapshot.workloads)
    if selector is None or selector.empty:
        return []
    return [default_constraint(key, skew, selector) for key, skew in _DEFAULT_CONSTRAINTS]


def _counts_by_domain(
    pod: PodInfo, constraint: Constraint, nodes: Sequence[NodeInfo], counts_by_node: Counter[str]
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node in nodes:
        if constraint.counts_in(pod, node):
            counts[node.labels.get(constraint.topology_key, "")] += counts_by_node[node.name]
    return counts


def _normalize(raw: Sequence[int], is_scored_by_node: Sequence[bool]) -> list[int]:
    scored_values = [value for value, is_scored in zip(raw, is_scored_by_node, strict=True) if is_scored]
    minimum, maximum = min(scored_values), max(scored_values)
    return [
        0
        if not is_scored
        else MAX_NODE_SCORE
        if maximum == 0
        else MAX_NODE_SCORE * (maximum + minimum - value) // maximum
        for value, is_scored in zip(raw, is_scored_by_node, strict=True)
    ]
