"""Claims of the pod that are not there, not bound, or bound to volumes that the node cannot reach.

Upstream: plugins/volumebinding.
"""

from typing import Final

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.single_node import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.volumes import PodVolumeClaims, claims_of, is_reachable

_ELSEWHERE: Final = Refusal(("node(s) didn't match PersistentVolume's node affinity",), is_final=True)
_NOTHING_FREE: Final = Refusal(("node(s) didn't find available persistent volumes to bind",), is_final=True)


def volume_binding(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Refusal | None:
    claims = claims_of(pod, snapshot.storage)
    if isinstance(claims, str):
        return Refusal((claims,), is_final=True)
    return _check_of(claims, snapshot) if claims else None


def _check_of(claims: PodVolumeClaims, snapshot: ClusterSnapshot) -> Check:
    def check(node: NodeInfo) -> Refusal | None:
        if not all(is_reachable(volume, node.node) for volume in claims.volumes):
            return _ELSEWHERE
        is_served = claims.assign(node.node, snapshot.storage) is not None
        return None if is_served else _NOTHING_FREE

    return check
