"""Which pods the scheduler has to do with, and what it writes into their status. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import conditions, meta
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView

SCHEDULER: Final = "default-scheduler"


def waits_for_node(pod: PodView) -> bool:
    """It is ours to place: not gated, not ended, not going."""
    spec = pod.object["spec"]
    is_ours = spec.get("schedulerName", SCHEDULER) == SCHEDULER
    return is_ours and not pod.node and pod.is_active and not spec.get("schedulingGates")


def takes_room(pod: PodView) -> bool:
    """On a node, until it has ended: one that is going keeps its room."""
    return bool(pod.node) and not pod.is_terminal


def nominated(pod: Tree) -> str:
    return (pod.get("status") or {}).get("nominatedNodeName") or ""


def unschedulable_patch(pod: Tree, message: str, now: datetime, nominee: str | None) -> dict[str, Any] | None:
    """A merge patch of the status; None where it says so already. `nominee` None leaves that field as it is."""
    condition: Mapping[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "observedGeneration": meta.generation(pod),
    }
    told = conditions.updated(conditions.of(pod), condition, now)
    changes: dict[str, Any] = {} if conditions.says(pod, condition) else {"conditions": told}
    if nominee is not None and nominee != nominated(pod):
        changes["nominatedNodeName"] = nominee or None
    return {"metadata": {"uid": meta.uid(pod)}, "status": changes} if changes else None
