"""Reject nodes that a pod neither names nor selects.

Upstream: plugins/nodename, nodeaffinity.
"""

from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.node_selectors import required_names, required_node_affinity, selects
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .filter import Check, Rejection, Restriction

_OTHER_NAME: Final = Rejection(("node(s) didn't match the requested node name",), is_unresolvable=True)
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


def node_name(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    requested_name = pod.spec.get("nodeName")
    return (lambda node: None if node.name == requested_name else _OTHER_NAME) if requested_name else None
