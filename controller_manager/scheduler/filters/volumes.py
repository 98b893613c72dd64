"""Reject nodes where the volumes of a pod are not accessible, or its claims cannot be bound.

Upstream: plugins/volumebinding, and what plugins/volumerestrictions checks for claims.
"""

from typing import Final

from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.filter import Check, Rejection
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.volumes import (
    PodVolumeClaims,
    claims_of,
    is_reachable,
    uses_claim_alone,
)

_NODE_CONFLICT: Final = Rejection(
    ("node(s) didn't match PersistentVolume's node affinity",), is_unresolvable=True
)
_BIND_CONFLICT: Final = Rejection(
    ("node(s) didn't find available persistent volumes to bind",), is_unresolvable=True
)
_IN_USE: Final = Rejection(
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    )
)


def volume_restrictions(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Rejection | None:
    """Reject all nodes while another pod uses a claim that only one pod may use; preemption may end that pod."""
    namespace = pod.view.key.namespace
    claims = [
        Key(namespace, name)
        for name in pod.claims
        if uses_claim_alone(snapshot.storage.claims.get(namespace, name))
    ]
    if not claims:
        return None
    users = {node.name for node in snapshot.nodes if any(claim in node.claim_counts for claim in claims)}

    def check(node: NodeInfo) -> Rejection | None:
        # The node may be one from which preemption has removed pods.
        is_used = users - {node.name} or any(claim in node.claim_counts for claim in claims)
        return _IN_USE if is_used else None

    return check


def volume_binding(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Rejection | None:
    claims = claims_of(pod, snapshot.storage)
    if isinstance(claims, str):
        return Rejection((claims,), is_unresolvable=True)
    return _check_of(claims, snapshot) if claims else None


def _check_of(claims: PodVolumeClaims, snapshot: ClusterSnapshot) -> Check:
    def check(node: NodeInfo) -> Rejection | None:
        if not all(is_reachable(volume, node.node) for volume in claims.volumes):
            return _NODE_CONFLICT
        can_bind = claims.assign(node.node, snapshot.storage) is not None
        return None if can_bind else _BIND_CONFLICT

    return check
