"""The default profile: its plugins, the pods that it schedules, and the pod status that it writes."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView

from .cluster import ClusterSnapshot
from .filters import taints_node_affinity_resources
from .filters.declared_features import declared_features
from .filters.filter import Check, Filter, GroupFilter, Rejection
from .filters.pod_affinity import grouped_pod_affinity, inter_pod_affinity
from .filters.spread import grouped_topology_spread, topology_spread
from .filters.volume_limits import volume_limits
from .filters.volumes import volume_binding, volume_restrictions, volume_zone
from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .scores.pod_affinity import grouped_pod_affinity_score, pod_affinity_score
from .scores.score import GroupScore, Score, balanced_allocation, least_allocated
from .scores.spread import grouped_topology_spread_score, topology_spread_score
from .scores.taints_node_affinity_images import (
    grouped_image_locality,
    grouped_node_affinity,
    grouped_taint_toleration,
    image_locality,
    node_affinity_score,
    taint_toleration_score,
)
from .scores.volumes import volume_capacity_score

if TYPE_CHECKING:
    from .devices.claims import DeviceSnapshot

SCHEDULER_NAME: Final = "default-scheduler"
DYNAMIC_RESOURCES: Final = "DynamicResources"


def is_gated(pod: PodView) -> bool:
    """Return whether a pod waits for its scheduling gates to be removed."""
    return bool(pod.is_active and pod.object["spec"].get("schedulingGates"))


def should_schedule(pod: PodView) -> bool:
    """Return whether the scheduler has to schedule the pod: it names it, is active and unbound, and has no gate."""
    spec = pod.object["spec"]
    is_responsible = spec.get("schedulerName", SCHEDULER_NAME) == SCHEDULER_NAME
    return is_responsible and not pod.node and pod.is_active and not spec.get("schedulingGates")


def pod_change_affects_scheduling(old: PodView, new: PodView) -> bool:
    """Return whether a change of one pod affects scheduling, as opposed to a condition that the scheduler has written."""
    return (
        # Most changes are those of pods that have a node: their specs need not be compared.
        not should_schedule(new)
        or old.deleting != new.deleting
        or old.labels != new.labels
        or old.node != new.node
        or old.object["spec"] != new.object["spec"]
        or _claim_statuses(old) != _claim_statuses(new)
    )


def _claim_statuses(pod: PodView) -> object:
    return (pod.object.get("status") or {}).get("resourceClaimStatuses")


def uses_resources(pod: PodView) -> bool:
    """Return whether the pod uses resources of a node: it is bound and not terminal. A terminating pod still does."""
    return bool(pod.node) and not pod.is_terminal


def nominated_node(pod: ReadOnlyTree) -> str:
    return (pod.get("status") or {}).get("nominatedNodeName") or ""


def unschedulable_patch(
    pod: ReadOnlyTree, message: str, now: datetime, nominated: str | None, reason: str = "Unschedulable"
) -> dict[str, Any] | None:
    """Return a merge patch of the pod's status; None if nothing changes. `nominated` None keeps `nominatedNodeName`."""
    condition: Mapping[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "observedGeneration": meta.generation(pod),
    }
    updated = conditions.set_condition(conditions.of(pod), condition, now)
    changes: dict[str, Any] = {} if conditions.has_condition(pod, condition) else {"conditions": updated}
    if nominated is not None and nominated != nominated_node(pod):
        changes["nominatedNodeName"] = nominated or None
    return {"metadata": {"uid": meta.uid(pod)}, "status": changes} if changes else None


def devices_for(pod: PodInfo, snapshot: ClusterSnapshot) -> "DeviceSnapshot | None":
    """Return the devices if a pod has claims for them, or extended resources that device classes provide; else None.

    Most clusters have no such pods, so that the modules for them are imported only then.
    """
    devices = snapshot.devices
    if devices is None or pod.spec.get("resourceClaims"):
        return devices
    return None if devices.extended_classes.keys().isdisjoint(pod.requested) else devices


def dynamic_resources(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Rejection | None:
    """Reject nodes without the devices that a pod needs."""
    devices = devices_for(pod, snapshot)
    if devices is None:
        return None
    from .filters.devices import check_claims  # noqa: PLC0415 - see above

    return check_claims(pod, devices)


def dynamic_resources_score(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]
) -> list[int] | None:
    """Prefer nodes with devices for the first alternatives of a pod's requests."""
    devices = devices_for(pod, snapshot)
    if devices is None:
        return None
    from .scores.devices import (  # noqa: PLC0415 - see above
        alternatives_score,
    )

    return alternatives_score(pod, devices, nodes)


FILTERS: Final[tuple[tuple[str, Filter], ...]] = (
    ("NodeName", taints_node_affinity_resources.node_name),
    ("NodeUnschedulable", taints_node_affinity_resources.node_unschedulable),
    ("TaintToleration", taints_node_affinity_resources.taint_toleration),
    ("NodeAffinity", taints_node_affinity_resources.node_affinity),
    ("NodePorts", taints_node_affinity_resources.node_ports),
    ("NodeResourcesFit", taints_node_affinity_resources.resources_fit),
    ("VolumeRestrictions", volume_restrictions),
    ("NodeVolumeLimits", volume_limits),
    ("VolumeBinding", volume_binding),
    ("VolumeZone", volume_zone),
    ("PodTopologySpread", topology_spread),
    ("InterPodAffinity", inter_pod_affinity),
    (DYNAMIC_RESOURCES, dynamic_resources),
    ("NodeDeclaredFeatures", declared_features),
)
"""The filter plugins: upstream's name and the function."""

SCORES: Final[tuple[tuple[str, Score, int], ...]] = (
    ("TaintToleration", taint_toleration_score, 3),
    ("NodeAffinity", node_affinity_score, 2),
    ("NodeResourcesFit", least_allocated, 1),
    ("VolumeBinding", volume_capacity_score, 1),
    ("PodTopologySpread", topology_spread_score, 2),
    ("InterPodAffinity", pod_affinity_score, 2),
    ("NodeResourcesBalancedAllocation", balanced_allocation, 1),
    ("ImageLocality", image_locality, 1),
    (DYNAMIC_RESOURCES, dynamic_resources_score, 2),
)
"""The score plugins: upstream's name, the function, and its weight."""

NODE_FILTERS: Final = frozenset(
    {
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NodeDeclaredFeatures",
    }
)
"""The filters that check a node by its own state alone."""
GROUP_FILTERS: Final[Mapping[str, Callable[[PodInfo, ClusterSnapshot], GroupFilter | None]]] = {
    "PodTopologySpread": grouped_topology_spread,
    "InterPodAffinity": grouped_pod_affinity,
}
"""The filters that have a form for groups of nodes."""
NODE_SCORES: Final = frozenset({"NodeResourcesFit", "NodeResourcesBalancedAllocation"})
"""The scores of a node that depend on its own state alone."""
GROUP_SCORES: Final[Mapping[str, Callable[[PodInfo, ClusterSnapshot], GroupScore | None]]] = {
    "TaintToleration": grouped_taint_toleration,
    "NodeAffinity": grouped_node_affinity,
    "PodTopologySpread": grouped_topology_spread_score,
    "InterPodAffinity": grouped_pod_affinity_score,
    "ImageLocality": grouped_image_locality,
}
"""The scores that have a form for groups of nodes."""
