"""The type of score plugins, the normalization and rounding of scores, and the scores of resource requests.

Upstream: plugins/noderesources (least and balanced allocation). All scores are integers, rounded as upstream does.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.grouped import Grouped
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.pod_requests import CPU, MEMORY

MAX_NODE_SCORE: Final = 100

Score = Callable[[PodInfo, ClusterSnapshot, Sequence[NodeInfo]], Sequence[int] | None]
"""Returns a score from 0 to 100 for each node; None if all nodes have the same."""


class GroupScore(Grouped, Protocol):
    """A score of a node that depends on other nodes, in the form that scores groups of nodes."""

    def scores(
        self, parts: Sequence[Any], sizes: Sequence[int], snapshot: ClusterSnapshot
    ) -> Sequence[int] | None:
        """Return the score of each group of feasible nodes, of which the part and the number of nodes are given."""


class NothingCounted:
    """A score that counts nothing of the whole cluster."""

    @staticmethod
    def contribution(_: NodeInfo) -> None:
        return None

    def add(self, contribution: Any, times: int) -> None: ...


def normalize_scores(raw: Sequence[int], *, less_is_better: bool = False) -> list[int]:
    """Scale scores so that the highest is 100; with `less_is_better`, reverse them as well."""
    highest = max(raw, default=0)
    if highest == 0:
        return [MAX_NODE_SCORE if less_is_better else 0] * len(raw)
    scaled = [value * MAX_NODE_SCORE // highest for value in raw]
    return [MAX_NODE_SCORE - value for value in scaled] if less_is_better else scaled


def round_half_up(value: float) -> int:
    """Round as Go's math.Round does; no score is negative."""
    return math.floor(value + 0.5)


_SCORED_RESOURCES: Final = (CPU, MEMORY)


def least_allocated(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[int]:
    return [_least_allocated(pod, node) for node in nodes]


def _least_allocated(pod: PodInfo, node: NodeInfo) -> int:
    shares = [_free_share(pod, node, name) for name in _SCORED_RESOURCES if node.allocatable[name]]
    return sum(shares) // len(shares) if shares else 0


def _free_share(pod: PodInfo, node: NodeInfo, name: str) -> int:
    allocatable = node.allocatable[name]
    free = allocatable - node.nonzero_requested[name] - pod.scored_requests[name]
    return max(free * MAX_NODE_SCORE // allocatable, 0)


def balanced_allocation(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]
) -> list[int] | None:
    """Prefer nodes where the pod balances the shares of CPU and memory in use; before 1.36, where they are balanced with it."""
    if not any(pod.requested[name] for name in _SCORED_RESOURCES) and not snapshot.gates.is_before("1.33"):
        return None
    balances = [_balance(node, pod.requested) for node in nodes]
    if snapshot.gates.is_before("1.36"):
        return balances
    half = MAX_NODE_SCORE // 2
    return [
        half + (half + balance - _balance(node, {})) // 2
        for node, balance in zip(nodes, balances, strict=True)
    ]


def _balance(node: NodeInfo, more: Mapping[str, int]) -> int:
    used = [
        min(1.0, (node.requested[name] + more.get(name, 0)) / node.allocatable[name])
        for name in _SCORED_RESOURCES
        if node.allocatable[name]
    ]
    deviation = abs(used[0] - used[1]) / 2 if len(used) > 1 else 0.0
    return math.trunc((1 - deviation) * MAX_NODE_SCORE)
