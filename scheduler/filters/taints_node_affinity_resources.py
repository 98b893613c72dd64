"""Reject nodes by their own state: taints, cordoning, name, affinity, host ports and resources.

Upstream: plugins/tainttoleration, nodeunschedulable, nodename, nodeaffinity, nodeports, noderesources (fit).
"""

from typing import Final

from mockube.apimachinery.resource_names import is_extended
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.node_selectors import required_names, required_node_affinity, selects
from mockube.client.component_helpers.tolerations import UNSCHEDULABLE, find_untolerated_taint, tolerates
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.args import NodeResourcesFitArgs
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .filter import Check, Rejection, Restriction

_DEFAULT_ARGS: Final = NodeResourcesFitArgs()


def resources_fit(
    pod: PodInfo, snapshot: ClusterSnapshot, args: NodeResourcesFitArgs = _DEFAULT_ARGS
) -> Check:
    requested = {
        name: amount
        for name, amount in pod.requested.items()
        if not (args.ignores(name) and is_extended(name))
    }
    by_devices = () if snapshot.devices is None else snapshot.devices.extended_classes
    can_be_unresolvable = not snapshot.gates.is_before("1.34")

    def check(node: NodeInfo) -> Rejection | None:
        reasons = ["Too many pods"] if len(node.pods) + 1 > node.max_pods else []
        insufficient = [
            name
            for name, amount in requested.items()
            if amount > node.allocatable[name] - node.requested[name]
            # Devices of a class provide the resource on a node that does not have it itself.
            and (name not in by_devices or node.allocatable[name] > 0)
        ]
        if not reasons and not insufficient:
            return None
        reasons += (f"Insufficient {name}" for name in insufficient)
        return Rejection(
            tuple(reasons),
            is_unresolvable=can_be_unresolvable
            and any(requested[name] > node.allocatable[name] for name in insufficient),
        )

    return check


_AFFINITY_MISMATCH: Final = Rejection(
    ("node(s) didn't match Pod's node affinity/selector",), is_unresolvable=True
)
_ENFORCED_MISMATCH: Final = Rejection(
    ("node(s) didn't match scheduler-enforced node affinity",), is_unresolvable=True
)
_AFFINITY_CONFLICT: Final = Rejection(("pod affinity terms conflict",), is_unresolvable=True)


def node_affinity(
    pod: PodInfo, _: ClusterSnapshot, added: ReadOnlyTree | None = None
) -> Check | Rejection | Restriction | None:
    """Reject nodes that the pod's affinity, or the one that is added to all pods', does not select."""
    matches = required_node_affinity(pod.spec)
    if matches is None and added is None:
        return None

    def check(node: NodeInfo) -> Rejection | None:
        if added is not None and not selects(added, node.node):
            return _ENFORCED_MISMATCH
        return None if matches is None or matches(node.node) else _AFFINITY_MISMATCH

    names = _node_names(pod)
    if names is None:
        return check
    return Restriction(names, check) if names else _AFFINITY_CONFLICT


def _node_names(pod: PodInfo) -> frozenset[str] | None:
    """Return the names of nodes that the terms of required affinity name; None if a term names none, or without terms."""
    required = (pod.affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required_names(required) if (required or {}).get("nodeSelectorTerms") else None


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


def taint_toleration(pod: PodInfo, snapshot: ClusterSnapshot) -> Check:
    names_taint = snapshot.gates.is_before("1.34")

    def check(node: NodeInfo) -> Rejection | None:
        taint = find_untolerated_taint(pod.spec, node.taints, ("NoSchedule", "NoExecute"))
        if taint is None:
            return None
        if not names_taint:
            return _UNTOLERATED
        reason = f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
        return Rejection((reason,), is_unresolvable=True)

    return check
