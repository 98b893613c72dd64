"""The type of score plugins, and the normalization and rounding of scores: all are integers, rounded as upstream does."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.group_form import GroupForm
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

MAX_NODE_SCORE: Final = 100

Score = Callable[[PodInfo, ClusterSnapshot, Sequence[NodeInfo]], Sequence[int] | None]
"""Returns a score from 0 to 100 for each node; None if all nodes have the same."""


class GroupScore(GroupForm, Protocol):
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


def score_nodes(
    score: GroupScore, nodes: Sequence[NodeInfo], snapshot: ClusterSnapshot
) -> Sequence[int] | None:
    """Return the scores of single nodes by a score that counts nothing of the whole cluster."""
    return score.scores([score.part(node, None) for node in nodes], (), snapshot)


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


def utilization(requested: int, capacity: int) -> int:
    """Return the share of a capacity that is requested, from 0 to 100."""
    return 100 if capacity == 0 or requested > capacity else requested * 100 // capacity
