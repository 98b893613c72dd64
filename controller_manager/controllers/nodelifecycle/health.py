"""The heartbeats of a node, in its status or by its Lease, and the conditions of a node without heartbeats.

Times of the node's clock are only compared with each other, never with this manager's clock.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY

STARTUP_GRACE: Final = timedelta(seconds=60)
"""The grace period of a node that never sent a status; it is upstream's default."""
KUBELET_CONDITIONS: Final = (CONDITION_READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that become Unknown when the kubelet sends no heartbeats."""


class NodeHealth(Struct, frozen=True, kw_only=True):
    """The last heartbeat of a node, and the time on this manager's clock when it was observed."""

    observed_at: datetime
    heartbeat: str | None
    """`lastHeartbeatTime` of its condition Ready; None without the condition."""
    renew_time: str | None
    """`renewTime` of its Lease."""
    lease_version: str = ""
    """The resourceVersion of its Lease when it was last renewed; empty without one."""

    def with_heartbeat_at(self, now: datetime) -> "NodeHealth":
        return replace(self, observed_at=now)


def observe(
    health: NodeHealth | None, node: ReadOnlyTree, lease: ReadOnlyTree | None, now: datetime
) -> NodeHealth:
    """Return the health after another observation of the node and its Lease."""
    ready = conditions.get(node, CONDITION_READY)
    heartbeat = (ready.get("lastHeartbeatTime") or "") if ready else None
    renew_time = ((lease or {}).get("spec") or {}).get("renewTime")
    lease_version = meta.resource_version(lease) if lease else ""
    if health is None:
        # A node that never sent a status has had no heartbeat since its creation.
        begin = now if ready is not None or renew_time else meta.creation_timestamp(node) or now
        return NodeHealth(
            observed_at=begin, heartbeat=heartbeat, renew_time=renew_time, lease_version=lease_version
        )
    has_new_heartbeat = heartbeat is not None and heartbeat != health.heartbeat
    is_renewed = renew_time is not None and renew_time != health.renew_time
    observed_at = now if has_new_heartbeat or is_renewed else health.observed_at
    return NodeHealth(
        observed_at=observed_at,
        heartbeat=heartbeat,
        renew_time=renew_time or health.renew_time,
        lease_version=lease_version if is_renewed else health.lease_version,
    )


def is_silent(health: NodeHealth, now: datetime, grace: timedelta) -> bool:
    """Return whether a node has sent no heartbeat for the grace period."""
    limit = STARTUP_GRACE if health.heartbeat is None else grace
    return now > health.observed_at + limit


def unknown_conditions(node: ReadOnlyTree, now: datetime) -> Sequence[dict[str, Any]]:
    """Return the conditions to change of a node without heartbeats; none if they are all Unknown."""
    changes = []
    for condition_type in KUBELET_CONDITIONS:
        present = conditions.get(node, condition_type)
        if present is not None and present["status"] == "Unknown":
            continue
        condition: dict[str, Any] = {
            "type": condition_type,
            "status": "Unknown",
            "lastTransitionTime": format_time(now),
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }
        if present is None:
            never = {"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
            created = meta.metadata(node).get("creationTimestamp")
            condition |= {**never, "lastHeartbeatTime": created}
        changes.append(condition)
    return changes
