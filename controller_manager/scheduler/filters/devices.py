"""Claims of devices. Most clusters have none, so what looks into them is imported for the first pod that has some.

Upstream: plugins/dynamicresources.
"""

from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.single_node import Check, Refusal
from mockube.controller_manager.scheduler.podinfo import PodInfo


def dynamic_resources(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Refusal | None:
    if snapshot.devices is None or not pod.spec.get("resourceClaims"):
        return None
    from mockube.controller_manager.scheduler.devices.claims import check_claims  # noqa: PLC0415 - see above

    return check_claims(pod, snapshot.devices)
