"""What a filter is, and the filters that look at one node by itself. A filter is called once for a pod, with all nodes, and returns a check for single nodes, None if it refuses none, or a refusal where no node will do. The first filter that refuses a node gives the reasons."""

from collections.abc import Callable
from typing import Final, NamedTuple

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.node_selectors import required_by
from mockube.controller_manager.workloads.tolerations import UNSCHEDULABLE, find_untolerated_taint, tolerates


class Refusal(NamedTuple):
    reasons: tuple[str, ...]
    is_final: bool = False
    """Preemption would not help."""
    is_error: bool = False
    """The pod's request is invalid for every node; the reason is the whole message."""


Check = Callable[[NodeInfo], Refusal | None]
Filter = Callable[[PodInfo, ClusterSnapshot], Check | Refusal | None]


def resources_fit(pod: PodInfo, _: ClusterSnapshot) -> Check:
    requested = {name: amount for name, amount in pod.requested.items() if amount > 0}

    def check(node: NodeInfo) -> Refusal | None:
        reasons = ["Too many pods"] if len(node.pods) + 1 > node.max_pods else []
        scarce = [
            name
            for name, amount in requested.items()
            if amount > node.allocatable[name] - node.requested[name]
        ]
        if not reasons and not scarce:
            return None
        reasons += (f"Insufficient {name}" for name in scarce)
        return Refusal(
            tuple(reasons), is_final=any(requested[name] > node.allocatable[name] for name in scarce)
        )

    return check


_MISMATCH: Final = Refusal(("node(s) didn't match Pod's node affinity/selector",), is_final=True)


def node_affinity(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    matches = required_by(pod.spec)
    return None if matches is None else lambda node: None if matches(node.node) else _MISMATCH


_CLOSED: Final = Refusal(("node(s) were unschedulable",), is_final=True)
_ANOTHER: Final = Refusal(("node(s) didn't match the requested node name",), is_final=True)


def node_unschedulable(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    if tolerates(pod.spec, UNSCHEDULABLE):
        return None
    return lambda node: _CLOSED if node.is_unschedulable else None


def node_name(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    requested_name = pod.spec.get("nodeName")
    return (lambda node: None if node.name == requested_name else _ANOTHER) if requested_name else None


_PORTS_IN_USE: Final = Refusal(("node(s) didn't have free ports for the requested pod ports",))


def node_ports(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    if not pod.host_ports:
        return None

    def check(node: NodeInfo) -> Refusal | None:
        used_ports = [port for other in node.pods.values() for port in other.host_ports]
        return (
            _PORTS_IN_USE
            if any(host_port.conflicts(used_port) for host_port in pod.host_ports for used_port in used_ports)
            else None
        )

    return check


_UNTOLERATED: Final = Refusal(("node(s) had untolerated taint(s)",), is_final=True)


def taint_toleration(pod: PodInfo, _: ClusterSnapshot) -> Check:
    def check(node: NodeInfo) -> Refusal | None:
        return (
            _UNTOLERATED
            if find_untolerated_taint(pod.spec, node.taints, ("NoSchedule", "NoExecute"))
            else None
        )

    return check
