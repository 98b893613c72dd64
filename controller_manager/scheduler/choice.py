"""Find the feasible nodes of a pod and the best of them, or the reasons why there is none. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.filter import Check, Rejection
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.profile import FILTERS, SCORES

MALFORMED_OBJECT_ERRORS: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""The exceptions that an object with fields of wrong types causes."""
MALFORMED: Final = Rejection(("node(s) could not be checked for the pod",), is_unresolvable=True)


class FeasibleNodes(Struct, frozen=True):
    """The feasible nodes of a pod, and why others are not."""

    feasible: Sequence[NodeInfo]
    rejections: Mapping[str, Rejection] = field(default_factory=dict)
    """The rejections by node name."""
    prefilter_rejection: Rejection | None = None
    """The rejection of all nodes, whatever their state."""

    @property
    def is_error(self) -> bool:
        return self.prefilter_rejection is not None and self.prefilter_rejection.is_error


def find_feasible(pod: PodInfo, snapshot: ClusterSnapshot, *, only: NodeInfo | None = None) -> FeasibleNodes:
    """Filter all nodes, or only one, by all filter plugins."""
    checks: list[Check] = []
    for make_check in FILTERS:
        check = make_check(pod, snapshot)
        if isinstance(check, Rejection):
            return FeasibleNodes((), {node.name: check for node in snapshot.nodes}, check)
        checks += [] if check is None else [check]
    nodes = snapshot.nodes if only is None else [only]
    rejections = {
        node.name: rejection
        for node in nodes
        if (rejection := _rejection_of(checks, pod, node, snapshot)) is not None
    }
    if snapshot.devices is not None:
        error = next((rejection for rejection in rejections.values() if rejection.is_error), None)
        if error is not None:
            return FeasibleNodes((), rejections, error)
    return FeasibleNodes([node for node in nodes if node.name not in rejections], rejections)


def _with_nominees(pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot) -> NodeInfo:
    """Return the node with the pods of equal or higher priority that are nominated for it, as if they ran there."""
    nominees = [
        nominee
        for nominee in snapshot.nominees(node.name)
        if nominee.priority >= pod.priority and nominee.view.uid != pod.view.uid
    ]
    if not nominees:
        return node
    node_with_nominees = node.copy()
    for nominee in nominees:
        node_with_nominees.add(nominee)
    return node_with_nominees


def _rejection_of(
    checks: Iterable[Check], pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot
) -> Rejection | None:
    """Return why a node is not feasible; None if it is. A node is rejected if it or the pod has fields of wrong types."""
    try:
        return _first_rejection(checks, _with_nominees(pod, node, snapshot))
    except MALFORMED_OBJECT_ERRORS:
        return MALFORMED


def _first_rejection(checks: Iterable[Check], node: NodeInfo) -> Rejection | None:
    for check in checks:
        rejection = check(node)
        if rejection is not None:
            return rejection
    return None


def best_nodes(pod: PodInfo, snapshot: ClusterSnapshot, feasible: Sequence[NodeInfo]) -> list[NodeInfo]:
    """Return the nodes with the highest total score."""
    if len(feasible) == 1:
        return [*feasible]
    totals = [0.0] * len(feasible)
    for score, weight in SCORES:
        scores = score(pod, snapshot, feasible)
        if scores is not None:
            totals = [
                total + weight * int(node_score) for total, node_score in zip(totals, scores, strict=True)
            ]
    highest = max(totals)
    return [node for node, total in zip(feasible, totals, strict=True) if total == highest]


def fit_error_message(rejections: Iterable[Rejection], nodes: int) -> str:
    """Return upstream's message, such as `0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.`"""
    counts = Counter(reason for rejection in rejections for reason in rejection.reasons)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {reasons}."


def diagnosis(feasible_nodes: FeasibleNodes, nodes: int) -> str:
    """Return the message of a pod without feasible nodes; `nodes` is the number of nodes."""
    if not nodes:
        return "no nodes available to schedule pods"
    if feasible_nodes.prefilter_rejection is not None and feasible_nodes.prefilter_rejection.is_error:
        return feasible_nodes.prefilter_rejection.reasons[0]
    if feasible_nodes.prefilter_rejection is not None:
        return f"0/{nodes} nodes are available: {', '.join(feasible_nodes.prefilter_rejection.reasons)}."
    return fit_error_message(feasible_nodes.rejections.values(), nodes)
