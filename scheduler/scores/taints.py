"""Score nodes by their taints with PreferNoSchedule.

Upstream: plugins/tainttoleration.
"""

from collections.abc import Sequence

from mockube.client.component_helpers.tolerations import tolerates
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .score import NothingCounted, normalize_scores, score_nodes


def taint_toleration_score(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]
) -> Sequence[int] | None:
    return score_nodes(TaintToleration(pod), nodes, snapshot)


class TaintToleration(NothingCounted):
    """The part of a node is the number of its taints that the pod would rather avoid."""

    def __init__(self, pod: PodInfo) -> None:
        self._pod = pod

    def part(self, node: NodeInfo, _: None) -> int:
        return sum(
            taint["effect"] == "PreferNoSchedule" and not tolerates(self._pod.spec, taint)
            for taint in node.taints
        )

    def scores(self, parts: Sequence[int], _: Sequence[int], __: ClusterSnapshot) -> list[int] | None:
        return normalize_scores(parts, less_is_better=True) if any(parts) else None


def grouped_taint_toleration(pod: PodInfo, _: ClusterSnapshot) -> TaintToleration:
    return TaintToleration(pod)
