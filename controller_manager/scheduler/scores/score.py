"""The type of score plugins, the normalization of scores, and the scores of resource requests.

Upstream: plugins/noderesources (least and balanced allocation).
"""

from collections.abc import Callable, Sequence
from statistics import pstdev
from typing import Final

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.pod_requests import CPU, MEMORY

MAX_NODE_SCORE: Final = 100

Score = Callable[[PodInfo, ClusterSnapshot, Sequence[NodeInfo]], Sequence[float] | None]
"""Returns a score from 0 to 100 for each node; None if all nodes have the same."""


def normalize_scores(raw: Sequence[float], *, less_is_better: bool = False) -> list[float]:
    """Scale scores so that the highest is 100; with `less_is_better`, reverse them as well."""
    highest = max(raw, default=0)
    if highest == 0:
        return [MAX_NODE_SCORE if less_is_better else 0.0] * len(raw)
    scaled = [value * MAX_NODE_SCORE / highest for value in raw]
    return [MAX_NODE_SCORE - value for value in scaled] if less_is_better else scaled


_SCORED_RESOURCES: Final = (CPU, MEMORY)


def least_allocated(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[float]:
    return [_least_allocated(pod, node) for node in nodes]


def _least_allocated(pod: PodInfo, node: NodeInfo) -> float:
    shares = [
        MAX_NODE_SCORE * (1 - _used_share(pod, node, name))
        for name in _SCORED_RESOURCES
        if node.allocatable[name]
    ]
    return sum(max(share, 0.0) for share in shares) / len(shares) if shares else 0.0


def _used_share(pod: PodInfo, node: NodeInfo, name: str) -> float:
    return (node.nonzero_requested[name] + pod.nonzero_requested[name]) / node.allocatable[name]


def balanced_allocation(pod: PodInfo, _: ClusterSnapshot, nodes: Sequence[NodeInfo]) -> list[float] | None:
    if not any(pod.requested[name] for name in _SCORED_RESOURCES):
        return None
    return [_balance(pod, node) for node in nodes]


def _balance(pod: PodInfo, node: NodeInfo) -> float:
    used = [
        min(1.0, (node.requested[name] + pod.requested[name]) / node.allocatable[name])
        for name in _SCORED_RESOURCES
        if node.allocatable[name]
    ]
    return MAX_NODE_SCORE * (1 - pstdev(used)) if used else MAX_NODE_SCORE
