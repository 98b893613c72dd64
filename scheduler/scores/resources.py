"""Score nodes by the shares of their resources that are requested. Upstream: plugins/noderesources.

All scores are integers, rounded as upstream does.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.resource_names import is_scalar
from mockube.client.component_helpers.pod_requests import CPU, MEMORY, Amounts
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.args import (
    DEFAULT_RESOURCES,
    DEFAULT_STRATEGY,
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    ResourceSpec,
    ScoringStrategy,
    broken_linear,
)
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .score import MAX_NODE_SCORE, round_half_up, utilization

_EPHEMERAL_STORAGE: Final = "ephemeral-storage"


class _Use(NamedTuple):
    """How much of a resource of a node is in use."""

    weight: int
    requested: int
    """With the pod."""
    requested_before: int
    allocatable: int


def _uses(
    pod_requests: Amounts, requested: Amounts, node: NodeInfo, resources: Sequence[ResourceSpec]
) -> list[_Use]:
    """Return the use of each resource that the node has, without extended ones that the pod does not request.

    `requested` are the requests for CPU and memory of the pods on the node.
    """
    uses = []
    for resource in resources:
        name, amount = resource.name, pod_requests[resource.name]
        if name not in (CPU, MEMORY, _EPHEMERAL_STORAGE) and not (amount and is_scalar(name)):
            continue
        allocatable = node.allocatable[name]
        if allocatable:
            before = (requested if name in (CPU, MEMORY) else node.requested)[name]
            uses.append(_Use(resource.weight, before + amount, before, allocatable))
    return uses


# --- NodeResourcesFit


def resource_score(
    pod: PodInfo,
    _: ClusterSnapshot,
    nodes: Sequence[NodeInfo],
    strategy: ScoringStrategy = DEFAULT_STRATEGY,
) -> list[int]:
    """Score nodes by a strategy: the least, the most, or some other share of their resources is requested."""
    score_of = _STRATEGIES[strategy.type]
    return [
        score_of(_uses(pod.scored_requests, node.nonzero_requested, node, strategy.resources), strategy)
        for node in nodes
    ]


def _least_allocated(uses: Sequence[_Use], _: ScoringStrategy) -> int:
    return _weighted_mean(
        [
            (use.weight, max(use.allocatable - use.requested, 0) * MAX_NODE_SCORE // use.allocatable)
            for use in uses
        ]
    )


def _most_allocated(uses: Sequence[_Use], _: ScoringStrategy) -> int:
    return _weighted_mean(
        [
            (use.weight, min(use.requested, use.allocatable) * MAX_NODE_SCORE // use.allocatable)
            for use in uses
        ]
    )


def _weighted_mean(scores: Sequence[tuple[int, int]]) -> int:
    total = sum(weight for weight, _ in scores)
    return sum(weight * score for weight, score in scores) // total if total else 0


def _requested_to_capacity_ratio(uses: Sequence[_Use], strategy: ScoringStrategy) -> int:
    """Return the mean of the scores that are not 0."""
    ratio = strategy.requested_to_capacity_ratio
    scores = [
        (use.weight, score)
        for use in uses
        if ratio is not None
        and (score := broken_linear(ratio.shape, utilization(use.requested, use.allocatable))) > 0
    ]
    total = sum(weight for weight, _ in scores)
    return round_half_up(sum(weight * score for weight, score in scores) / total) if total else 0


_STRATEGIES: Final[Mapping[str, Callable[[Sequence[_Use], ScoringStrategy], int]]] = {
    LEAST_ALLOCATED: _least_allocated,
    MOST_ALLOCATED: _most_allocated,
    REQUESTED_TO_CAPACITY_RATIO: _requested_to_capacity_ratio,
}


# --- NodeResourcesBalancedAllocation


def balanced_allocation(
    pod: PodInfo,
    snapshot: ClusterSnapshot,
    nodes: Sequence[NodeInfo],
    resources: Sequence[ResourceSpec] = DEFAULT_RESOURCES,
) -> list[int] | None:
    """Prefer nodes where the pod balances the shares of resources in use; before 1.36, where they are balanced with it."""
    if not any(pod.requested[one.name] for one in resources) and not snapshot.gates.is_before("1.33"):
        return None
    all_uses = [_uses(pod.requested, node.requested, node, resources) for node in nodes]
    balances = [_balance([use.requested / use.allocatable for use in uses]) for uses in all_uses]
    if snapshot.gates.is_before("1.36"):
        return balances
    half = MAX_NODE_SCORE // 2
    return [
        half + (half + balance - _balance([use.requested_before / use.allocatable for use in uses])) // 2
        for uses, balance in zip(all_uses, balances, strict=True)
    ]


def _balance(shares: Sequence[float]) -> int:
    used = [min(1.0, share) for share in shares]
    match used:
        case [] | [_]:
            deviation = 0.0
        case [first, second]:
            deviation = abs((first - second) / 2)
        case _:
            deviation = _standard_deviation(used)
    return math.trunc((1 - deviation) * MAX_NODE_SCORE)


def _standard_deviation(values: Sequence[float]) -> float:
    """Return it as Go's additions, one after the other, give it: `sum` is more exact."""
    total = squares = 0.0
    for value in values:
        total += value
    mean = total / len(values)
    for value in values:
        squares += (value - mean) * (value - mean)
    return math.sqrt(squares / len(values))
