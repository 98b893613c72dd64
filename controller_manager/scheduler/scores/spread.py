"""Score nodes by how evenly a pod spreads matching pods. Upstream: plugins/podtopologyspread, scoring.

A pod without constraints is spread over hosts and zones with the other pods of its controller.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.wellknown import LABEL_HOSTNAME, LABEL_ZONE
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.scores.score import MAX_NODE_SCORE
from mockube.controller_manager.scheduler.spreading import PREFERRED, Constraint, constraints_of


class _SpreadTerm(NamedTuple):
    topology_key: str
    max_skew: int
    counts_in: Callable[[NodeInfo], bool]
    count: Callable[[NodeInfo], int]


_DEFAULT_CONSTRAINTS: Final = ((LABEL_HOSTNAME, 3), (LABEL_ZONE, 5))


def topology_spread_score(
    pod: PodInfo, snapshot: ClusterSnapshot, feasible: Sequence[NodeInfo]
) -> list[float] | None:
    terms = _spread_terms(pod)
    # The default constraints do not require the topology labels.
    has_own_constraints = bool(pod.spec.get("topologySpreadConstraints"))
    is_scored_by_node = [
        not has_own_constraints or all(term.topology_key in node.labels for term in terms)
        for node in feasible
    ]
    if not terms or not any(is_scored_by_node):
        return None
    raw = [0.0] * len(feasible)
    for term in terms:
        counts = _counts(term, snapshot)
        weight = math.log(len({node.labels.get(term.topology_key) for node in feasible}) + 2)
        for index, node in enumerate(feasible):
            value = node.labels.get(term.topology_key)
            if value is not None:
                raw[index] += counts[value] * weight + (term.max_skew - 1)
    return _normalize(raw, is_scored_by_node)


def _spread_terms(pod: PodInfo) -> list[_SpreadTerm]:
    constraints = constraints_of(pod, PREFERRED)
    if constraints or pod.spec.get("topologySpreadConstraints"):
        return [_spread_term(pod, constraint) for constraint in constraints]
    owner = pod.view.owner_uid
    if not owner:
        return []
    return [
        _SpreadTerm(key, skew, lambda _: True, lambda node: node.pod_counts_by_owner[owner])
        for key, skew in _DEFAULT_CONSTRAINTS
    ]


def _spread_term(pod: PodInfo, constraint: Constraint) -> _SpreadTerm:
    return _SpreadTerm(
        constraint.topology_key,
        constraint.max_skew,
        lambda node: constraint.counts_in(pod, node),
        lambda node: constraint.count(pod, node),
    )


def _counts(term: _SpreadTerm, snapshot: ClusterSnapshot) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node in snapshot.nodes:
        value = node.labels.get(term.topology_key)
        if value is not None and term.counts_in(node):
            counts[value] += term.count(node)
    return counts


def _normalize(raw: Sequence[float], is_scored_by_node: Sequence[bool]) -> list[float]:
    scored_values = [
        round(value) for value, is_scored in zip(raw, is_scored_by_node, strict=True) if is_scored
    ]
    minimum, maximum = min(scored_values), max(scored_values)
    return [
        0.0
        if not is_scored
        else MAX_NODE_SCORE
        if maximum == 0
        else MAX_NODE_SCORE * (maximum + minimum - round(value)) / maximum
        for value, is_scored in zip(raw, is_scored_by_node, strict=True)
    ]
