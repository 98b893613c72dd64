"""Choose a node for a pod, or return why there is none. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.single_node import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.profile import FILTERS, SCORES

OF_WRONG_TYPES: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""The exceptions of an object whose fields have the wrong types."""
UNREADABLE: Final = Refusal(("node(s) could not be checked for the pod",), is_final=True)


class FeasibleNodes(Struct, frozen=True):
    feasible: Sequence[NodeInfo]
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    """By node."""
    rejection: Refusal | None = None
    """Of all nodes alike."""

    @property
    def is_error(self) -> bool:
        return self.rejection is not None and self.rejection.is_error


def find_feasible(pod: PodInfo, snapshot: ClusterSnapshot, *, only: NodeInfo | None = None) -> FeasibleNodes:
    """Of all nodes, or to see about a single one."""
    checks: list[Check] = []
    for make_check in FILTERS:
        check = make_check(pod, snapshot)
        if isinstance(check, Refusal):
            return FeasibleNodes((), {node.name: check for node in snapshot.nodes}, check)
        checks += [] if check is None else [check]
    nodes = snapshot.nodes if only is None else [only]
    refusals = {
        node.name: refusal for node in nodes if (refusal := _refusal(checks, pod, node, snapshot)) is not None
    }
    if snapshot.devices is not None:
        error = next((refusal for refusal in refusals.values() if refusal.is_error), None)
        if error is not None:
            return FeasibleNodes((), refusals, error)
    return FeasibleNodes([node for node in nodes if node.name not in refusals], refusals)


def _with_nominees(pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot) -> NodeInfo:
    """The room that is being made for others of the same priority or more is theirs."""
    others = [
        nominee
        for nominee in snapshot.nominees(node.name)
        if nominee.priority >= pod.priority and nominee.view.uid != pod.view.uid
    ]
    if not others:
        return node
    fuller = node.copy()
    for nominee in others:
        fuller.add(nominee)
    return fuller


def _refusal(
    checks: Iterable[Check], pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot
) -> Refusal | None:
    """A node that cannot be checked, as fields of it or of the pod have wrong types, does not take the pod."""
    try:
        return _first_refusal(checks, _with_nominees(pod, node, snapshot))
    except OF_WRONG_TYPES:
        return UNREADABLE


def _first_refusal(checks: Iterable[Check], node: NodeInfo) -> Refusal | None:
    for check in checks:
        refusal = check(node)
        if refusal is not None:
            return refusal
    return None


def best_nodes(pod: PodInfo, snapshot: ClusterSnapshot, feasible: Sequence[NodeInfo]) -> list[NodeInfo]:
    """Those that are equally good."""
    if len(feasible) == 1:
        return [*feasible]
    totals = [0.0] * len(feasible)
    for score, weight in SCORES:
        points = score(pod, snapshot, feasible)
        if points is not None:
            totals = [total + weight * int(point) for total, point in zip(totals, points, strict=True)]
    highest = max(totals)
    return [node for node, total in zip(feasible, totals, strict=True) if total == highest]


def fit_error_message(refusals: Iterable[Refusal], nodes: int) -> str:
    """As upstream puts it: `0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.`"""
    counts = Counter(reason for refusal in refusals for reason in refusal.reasons)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {reasons}."


def diagnosis(feasible_nodes: FeasibleNodes, nodes: int) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    if feasible_nodes.rejection is not None and feasible_nodes.rejection.is_error:
        return feasible_nodes.rejection.reasons[0]
    if feasible_nodes.rejection is not None:
        return f"0/{nodes} nodes are available: {', '.join(feasible_nodes.rejection.reasons)}."
    return fit_error_message(feasible_nodes.refusals.values(), nodes)
