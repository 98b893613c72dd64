"""Nodes with much left, and nodes whose CPU and memory are used alike. Upstream: plugins/noderesources."""

from collections.abc import Sequence
from statistics import pstdev
from typing import Final

from mockube.controller_manager.scheduler.amounts import CPU, MEMORY
from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.scores.score import BEST

_WEIGHED: Final = (CPU, MEMORY)


def least_allocated(pod: PodInfo, _: World, nodes: Sequence[NodeInfo]) -> list[float]:
    return [_left(pod, node) for node in nodes]


def _left(pod: PodInfo, node: NodeInfo) -> float:
    shares = [BEST * (1 - _used(pod, node, name)) for name in _WEIGHED if node.allocatable[name]]
    return sum(max(share, 0.0) for share in shares) / len(shares) if shares else 0.0


def _used(pod: PodInfo, node: NodeInfo, name: str) -> float:
    return (node.weighed[name] + pod.weighed[name]) / node.allocatable[name]


def balanced_allocation(pod: PodInfo, _: World, nodes: Sequence[NodeInfo]) -> list[float] | None:
    if not any(pod.requested[name] for name in _WEIGHED):
        return None
    return [_balance(pod, node) for node in nodes]


def _balance(pod: PodInfo, node: NodeInfo) -> float:
    used = [
        min(1.0, (node.requested[name] + pod.requested[name]) / node.allocatable[name])
        for name in _WEIGHED
        if node.allocatable[name]
    ]
    return BEST * (1 - pstdev(used)) if used else BEST
