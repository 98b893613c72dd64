"""Which pods a scheduler handles, and which it must not yet: profiles and scheduling gates."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.filters.devices import dynamic_resources
from mockube.controller_manager.scheduler.filters.pod_affinity import inter_pod_affinity
from mockube.controller_manager.scheduler.filters.single_node import (
    Filter,
    node_affinity,
    node_name,
    node_ports,
    node_unschedulable,
    resources_fit,
    taint_toleration,
)
from mockube.controller_manager.scheduler.filters.spread import topology_spread
from mockube.controller_manager.scheduler.filters.volumes import volume_binding
from mockube.controller_manager.scheduler.scores.affinity_taints_images import (
    image_locality,
    preferred_affinity,
    preferred_pod_affinity,
    tolerated_taints,
)
from mockube.controller_manager.scheduler.scores.score import Score, balanced_allocation, least_allocated
from mockube.controller_manager.scheduler.scores.spread import preferred_topology_spread

SCHEDULER: Final = "default-scheduler"


def waits_for_node(pod: PodView) -> bool:
    """It is ours to place: not gated, not ended, not going."""
    spec = pod.object["spec"]
    is_ours = spec.get("schedulerName", SCHEDULER) == SCHEDULER
    return is_ours and not pod.node and pod.is_active and not spec.get("schedulingGates")


def uses_resources(pod: PodView) -> bool:
    """On a node, until it has ended: one that is going keeps its room."""
    return bool(pod.node) and not pod.is_terminal


def nominated_node(pod: ReadOnlyTree) -> str:
    return (pod.get("status") or {}).get("nominatedNodeName") or ""


def unschedulable_patch(
    pod: ReadOnlyTree, message: str, now: datetime, nominee: str | None, reason: str = "Unschedulable"
) -> dict[str, Any] | None:
    """A merge patch of the status; None without a difference. `nominee` None leaves that field as it is."""
    condition: Mapping[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "observedGeneration": meta.generation(pod),
    }
    updated = conditions.set_condition(conditions.of(pod), condition, now)
    changes: dict[str, Any] = {} if conditions.has_condition(pod, condition) else {"conditions": updated}
    if nominee is not None and nominee != nominated_node(pod):
        changes["nominatedNodeName"] = nominee or None
    return {"metadata": {"uid": meta.uid(pod)}, "status": changes} if changes else None


FILTERS: Final[tuple[Filter, ...]] = (
    node_unschedulable,
    node_name,
    taint_toleration,
    node_affinity,
    node_ports,
    resources_fit,
    volume_binding,
    topology_spread,
    inter_pod_affinity,
    dynamic_resources,
)

SCORES: Final[tuple[tuple[Score, int], ...]] = (
    (tolerated_taints, 3),
    (preferred_affinity, 2),
    (preferred_topology_spread, 2),
    (preferred_pod_affinity, 2),
    (least_allocated, 1),
    (balanced_allocation, 1),
    (image_locality, 1),
)
