"""Whether a node sends heartbeats, in its status or by its Lease; and the conditions of a node that does not.

Pure. Times of the node's own clock are only compared with each other, never with this one's.
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
"""For a node that never sent a status; upstream's default."""
KUBELET_CONDITIONS: Final = (CONDITION_READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""Conditions that become Unknown once the kubelet is silent."""


class Health(Struct, frozen=True, kw_only=True):
    """The last heartbeat of a node, and its time on this clock."""

    heard_at: datetime
    heartbeat: str | None
    """Of its condition Ready; None where it has none."""
    renewed: str | None
    """Of its Lease."""

    def with_heartbeat_at(self, now: datetime) -> "Health":
        return replace(self, heard_at=now)


def listen(health: Health | None, node: ReadOnlyTree, lease: ReadOnlyTree | None, now: datetime) -> Health:
    """Return the health after another observation of the node and its Lease."""
    ready = conditions.get(node, CONDITION_READY)
    heartbeat = (ready.get("lastHeartbeatTime") or "") if ready else None
    renewed = ((lease or {}).get("spec") or {}).get("renewTime")
    if health is None:
        # A node that never sent a status is silent since its creation.
        begin = now if ready is not None or renewed else meta.creation_timestamp(node) or now
        return Health(heard_at=begin, heartbeat=heartbeat, renewed=renewed)
    has_heartbeat = heartbeat is not None and heartbeat != health.heartbeat
    is_renewed = renewed is not None and renewed != health.renewed
    heard_at = now if has_heartbeat or is_renewed else health.heard_at
    return Health(heard_at=heard_at, heartbeat=heartbeat, renewed=renewed or health.renewed)


def is_silent(health: Health, now: datetime, grace: timedelta) -> bool:
    limit = STARTUP_GRACE if health.heartbeat is None else grace
    return now > health.heard_at + limit


def unknown_conditions(node: ReadOnlyTree, now: datetime) -> Sequence[dict[str, Any]]:
    """The condition changes of a silent node: none once they are all Unknown."""
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
