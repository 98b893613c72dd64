"""Reject nodes by their own state: taints, cordoning, name, affinity, host ports and resources.

Upstream: plugins/tainttoleration, nodeunschedulable, nodename, nodeaffinity, nodeports, noderesources (fit).
"""

from typing import Final

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.filter import Check, Rejection
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.node_selectors import required_node_affinity
from mockube.controller_manager.workloads.tolerations import UNSCHEDULABLE, find_untolerated_taint, tolerates


def resources_fit(pod: PodInfo, _: ClusterSnapshot) -> Check:
    requested = {name: amount for name, amount in pod.requested.items() if amount > 0}

    def check(node: NodeInfo) -> Rejection | None:
        reasons = ["Too many pods"] if len(node.pods) + 1 > node.max_pods else []
        insufficient = [
            name
            for name, amount in requested.items()
            if amount > node.allocatable[name] - node.requested[name]
        ]
        if not reasons and not insufficient:
            return None
        reasons += (f"Insufficient {name}" for name in insufficient)
        return Rejection(
            tuple(reasons),
            is_unresolvable=any(requested[name] > node.allocatable[name] for name in insufficient),
        )

    return check


_AFFINITY_MISMATCH: Final = Rejection(
    ("node(s) didn't match Pod's node affinity/selector",), is_unresolvable=True
)


def node_affinity(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    matches = required_node_affinity(pod.spec)
    return None if matches is None else lambda node: None if matches(node.node) else _AFFINITY_MISMATCH


_UNSCHEDULABLE_NODE: Final = Rejection(("node(s) were unschedulable",), is_unresolvable=True)
_OTHER_NAME: Final = Rejection(("node(s) didn't match the requested node name",), is_unresolvable=True)


def node_unschedulable(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    if tolerates(pod.spec, UNSCHEDULABLE):
        return None
    return lambda node: _UNSCHEDULABLE_NODE if node.is_unschedulable else None


def node_name(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    requested_name = pod.spec.get("nodeName")
    return (lambda node: None if node.name == requested_name else _OTHER_NAME) if requested_name else None


_PORTS_IN_USE: Final = Rejection(("node(s) didn't have free ports for the requested pod ports",))


def node_ports(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    if not pod.host_ports:
        return None

    def check(node: NodeInfo) -> Rejection | None:
        used_ports = [port for other in node.pods.values() for port in other.host_ports]
        return (
            _PORTS_IN_USE
            if any(host_port.conflicts(used_port) for host_port in pod.host_ports for used_port in used_ports)
            else None
        )

    return check


_UNTOLERATED: Final = Rejection(("node(s) had untolerated taint(s)",), is_unresolvable=True)


def taint_toleration(pod: PodInfo, _: ClusterSnapshot) -> Check:
    def check(node: NodeInfo) -> Rejection | None:
        return (
            _UNTOLERATED
            if find_untolerated_taint(pod.spec, node.taints, ("NoSchedule", "NoExecute"))
            else None
        )

    return check
