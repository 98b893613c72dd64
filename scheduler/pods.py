"""Which pods a scheduler schedules, and the pod status that it writes. Pure."""

from collections.abc import Container, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

DEFAULT_SCHEDULER: Final = "default-scheduler"


def scheduler_name(pod: PodView) -> str:
    """Return the name of the scheduler, or of its profile, that a pod names."""
    return pod.object["spec"].get("schedulerName") or DEFAULT_SCHEDULER


def is_gated(pod: PodView) -> bool:
    """Return whether a pod waits for its scheduling gates to be removed."""
    return bool(pod.is_active and pod.object["spec"].get("schedulingGates"))


def should_schedule(pod: PodView, profiles: Container[str]) -> bool:
    """Return whether the scheduler has to schedule the pod: it names a profile, is active and unbound, and has no gate."""
    is_responsible = scheduler_name(pod) in profiles
    is_waiting = not pod.node and pod.is_active and not pod.object["spec"].get("schedulingGates")
    return is_responsible and is_waiting


def pod_change_affects_scheduling(old: PodView, new: PodView, profiles: Container[str]) -> bool:
    """Return whether a change of one pod affects scheduling, as opposed to a condition that the scheduler has written."""
    return (
        # Most changes are those of pods that have a node: their specs need not be compared.
        not should_schedule(new, profiles)
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
