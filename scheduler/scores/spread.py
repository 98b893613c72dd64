"""Score nodes by how evenly a pod spreads matching pods. Upstream: plugins/podtopologyspread, scoring.

A pod without constraints is spread over hosts and zones with the other pods of its Services and of its controller.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.args import PodTopologySpreadArgs
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.spreading import (
    DEFAULT_ARGS,
    PREFERRED,
    Constraint,
    constraints_of,
    requires_all_labels,
)

from .score import MAX_NODE_SCORE, round_half_up


def topology_spread_score(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    feasible: Sequence[NodeInfo],
    args: PodTopologySpreadArgs = DEFAULT_ARGS,
) -> list[int] | None:
    constraints = constraints_of(pod, PREFERRED, snapshot.workloads, args)
    required_keys = _required_keys(pod, constraints, args)

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


def _required_keys(
    pod: PodInfo, constraints: Sequence[Constraint], args: PodTopologySpreadArgs
) -> Sequence[str]:
    """Return the labels without which a node is not scored."""
    return [one.topology_key for one in constraints] if requires_all_labels(pod, args) else []


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


# --- the same for groups of nodes


class _Part(NamedTuple):
    """What of a node decides: of each constraint the domain and, for hosts, the number of matching pods."""

    is_scored: bool
    """Whether the node has the labels of all constraints of the pod itself."""
    domains: tuple[str | None, ...]
    pods_on_host: tuple[int, ...]


class GroupedTopologySpreadScore:
    """The score for groups of nodes."""

    def __init__(self, pod: PodInfo, constraints: Sequence[Constraint], args: PodTopologySpreadArgs) -> None:
        self._pod = pod
        self._constraints = constraints
        self._required_keys = _required_keys(pod, constraints, args)
        self._counts = [Counter[str]() for _ in constraints]

    def part(self, node: NodeInfo, _: object) -> _Part:
        domains = tuple(
            ""
            if one.topology_key == LABEL_HOSTNAME and LABEL_HOSTNAME in node.labels
            else node.labels.get(one.topology_key)
            for one in self._constraints
        )
        on_host = tuple(
            one.count(self._pod, node) if one.topology_key == LABEL_HOSTNAME else 0
            for one in self._constraints
        )
        return _Part(all(key in node.labels for key in self._required_keys), domains, on_host)

    def contribution(self, node: NodeInfo) -> Sequence[tuple[str, int]] | None:
        """Return the domain of each constraint, and the matching pods that it counts there."""
        if not all(key in node.labels for key in self._required_keys):
            return None
        return [
            (
                node.labels.get(one.topology_key, ""),
                one.count(self._pod, node) if one.counts_in(self._pod, node) else 0,
            )
            if one.topology_key != LABEL_HOSTNAME
            else ("", 0)
            for one in self._constraints
        ]

    def add(self, contribution: Sequence[tuple[str, int]], times: int) -> None:
        for counts, (domain, pods) in zip(self._counts, contribution, strict=True):
            if pods:
                counts[domain] += pods * times

    def scores(
        self, parts: Sequence[_Part], sizes: Sequence[int], _: ClusterSnapshot
    ) -> Sequence[int] | None:
        is_scored = [part.is_scored for part in parts]
        if not any(is_scored):
            return None
        raw = [0.0] * len(parts)
        for position, constraint in enumerate(self._constraints):
            counts = self._counts[position]
            is_host = constraint.topology_key == LABEL_HOSTNAME
            domains = {part.domains[position] or "" for part in parts if part.is_scored}
            weight = math.log((sum(compress(sizes, is_scored)) if is_host else len(domains)) + 2)
            for index, part in enumerate(parts):
                domain = part.domains[position]
                if domain is not None:
                    count = part.pods_on_host[position] if is_host else counts[domain]
                    raw[index] += count * weight + (constraint.max_skew - 1)
        return _normalize([round_half_up(value) for value in raw], is_scored)


def grouped_topology_spread_score(
    pod: PodInfo, snapshot: ClusterSnapshot, args: PodTopologySpreadArgs = DEFAULT_ARGS
) -> GroupedTopologySpreadScore | None:
    constraints = constraints_of(pod, PREFERRED, snapshot.workloads, args)
    return GroupedTopologySpreadScore(pod, constraints, args) if constraints else None
