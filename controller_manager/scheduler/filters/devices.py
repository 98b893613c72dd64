"""Reject nodes without the devices that a pod claims. Upstream: plugins/dynamicresources.

Most clusters have no such claims, so the allocator is imported for the first pod that has one.
"""

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.filter import Check, Rejection
from mockube.controller_manager.scheduler.podinfo import PodInfo


def dynamic_resources(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Rejection | None:
    if snapshot.devices is None or not pod.spec.get("resourceClaims"):
        return None
    from mockube.controller_manager.scheduler.devices.claims import check_claims  # noqa: PLC0415 - see above

    return check_claims(pod, snapshot.devices)
