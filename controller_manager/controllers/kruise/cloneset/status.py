"""The status of a CloneSet: its counts, revisions and conditions, from observed pods and never from the plan."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import after, format_time, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import CLONE_SETS
from mockube.controller_manager.control.actions import Update
from mockube.controller_manager.controllers.kruise.cloneset.spec import SetView
from mockube.controller_manager.controllers.kruise.cloneset.state import CloneSetState
from mockube.controller_manager.workloads.inplace.update import is_in_service

PROGRESSING: Final = "Progressing"

_UPDATED: Final = "CloneSetUpdated"
_EXCEEDED: Final = "ProgressDeadlineExceeded"
_POD_COUNTS: Final = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "updatedReplicas",
    "updatedReadyReplicas",
    "updatedAvailableReplicas",
)
_SIGNS: Final = ("updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas")
"""The counts that grow as a rollout progresses."""


class Failure(NamedTuple):
    """What could not be done: `FailedScale` or `FailedUpdate`, and why."""

    type: str
    message: str


def of(state: CloneSetState, collision_count: int, failure: Failure | None) -> dict[str, Any]:
    """A failure condition stays until another replaces it: upstream never removes it."""
    status = {**_revisions(state), **_counts(state), "collisionCount": collision_count}
    present: list[ReadOnlyTree] = [*conditions.of(state.owner.object)]
    new_conditions = [progressing_condition(state.owner, status, state.now)]
    if failure is not None:
        new_conditions.append({"type": failure.type, "status": "True", "message": failure.message})
    for condition in new_conditions:
        if condition is not None:
            present = conditions.set_condition(present, condition, state.now)
    return {**status, **({"conditions": present} if present else {})}


def _revisions(state: CloneSetState) -> dict[str, Any]:
    """When all pods have the update revision it becomes the current one, whether they are ready or not."""
    replicas = state.owner.limits.replicas
    is_done = all(map(state.is_updated, state.pods)) and len(state.pods) == replicas
    return {
        "observedGeneration": meta.generation(state.owner.object),
        "currentRevision": state.update_name if is_done else state.current_name,
        "updateRevision": state.update_name,
        "expectedUpdatedReplicas": replicas - state.owner.limits.partition,
        "labelSelector": str(state.owner.selector),
    }


def _counts(state: CloneSetState) -> dict[str, int]:
    ready = [pod for pod in state.pods if is_in_service(pod, 0, state.now)]
    available = [pod for pod in ready if state.is_available(pod)]
    return {
        "replicas": len(state.pods),
        "readyReplicas": len(ready),
        "availableReplicas": len(available),
        "updatedReplicas": sum(map(state.is_updated, state.pods)),
        "updatedReadyReplicas": sum(map(state.is_updated, ready)),
        "updatedAvailableReplicas": sum(map(state.is_updated, available)),
    }


def status_update(state: CloneSetState, new: ReadOnlyTree) -> tuple[Update, ...]:
    """Write the status if it differs."""
    old = state.owner.status
    if _is_same_status(old, new):
        return ()
    body = {**state.owner.object, "status": {**old, **new}}
    return (Update(resource=CLONE_SETS, body=body, subresource="status"),)


def _is_same_status(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    """A count of 0 may be left out. A repeated failure with another message is no change."""
    return _news(old) == _news(new) and all(
        (old.get(field) or 0) == value for field, value in new.items() if field != "conditions"
    )


def _news(status: ReadOnlyTree) -> Sequence[tuple[Any, ...]]:
    fields = ("type", "status", "reason", "lastUpdateTime")
    return [tuple(condition.get(field) for field in fields) for condition in status.get("conditions") or ()]


# --- the condition Progressing, if the spec has a deadline


def progressing_condition(owner: SetView, status: ReadOnlyTree, now: datetime) -> dict[str, Any] | None:
    """Return the condition for a status; None where there is no deadline."""
    if owner.progress_deadline_seconds is None:
        return None
    old = conditions.get(owner.object, PROGRESSING) or {}
    reason = _reason(owner, status, old, now)
    has_moved = reason != old.get("reason") or (reason == _UPDATED and _has_progressed(owner.status, status))
    return {
        "type": PROGRESSING,
        "status": "False" if reason == _EXCEEDED else "True",
        "lastUpdateTime": format_time(now) if has_moved else old.get("lastUpdateTime") or format_time(now),
        "reason": reason,
        "message": _MESSAGES[reason].format(revision=status["updateRevision"]),
    }


def progress_deadline(owner: SetView, progressing: ReadOnlyTree | None) -> datetime | None:
    """The progress deadline, unless there is progress before."""
    if (
        owner.progress_deadline_seconds is None
        or progressing is None
        or progressing.get("reason") != _UPDATED
    ):
        return None
    return after(parse_time(progressing["lastUpdateTime"]), span_of(owner.progress_deadline_seconds))


def _reason(owner: SetView, status: ReadOnlyTree, old: ReadOnlyTree, now: datetime) -> str:
    for reason, holds in _RESTING.items():
        if holds(owner, status):
            return reason
    if owner.status.get("updateRevision") != status["updateRevision"]:
        return _UPDATED
    if old.get("reason") == _EXCEEDED:
        return _EXCEEDED  # until there is another revision, or an end
    due = progress_deadline(owner, old)
    is_late = due is not None and due <= now and not _has_progressed(owner.status, status)
    return _EXCEEDED if is_late else _UPDATED


def _has_progressed(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    if old.get("updateRevision") != new["updateRevision"]:
        return True
    old_pods, new_pods = (
        (status.get("replicas") or 0) - (status.get("updatedReplicas") or 0) for status in (old, new)
    )
    return new_pods < old_pods or any(new[count] > (old.get(count) or 0) for count in _SIGNS)


# --- the reasons of that condition


def _is_available(owner: SetView, status: ReadOnlyTree) -> bool:
    is_one = status["currentRevision"] == status["updateRevision"]
    return is_one and all(status[count] == owner.limits.replicas for count in _POD_COUNTS)


def _is_paused(owner: SetView, _: ReadOnlyTree) -> bool:
    return owner.paused


def _is_partition_available(owner: SetView, status: ReadOnlyTree) -> bool:
    expected: int = status["expectedUpdatedReplicas"]
    return expected < owner.limits.replicas and expected <= status["updatedAvailableReplicas"]


_RESTING: Final[Mapping[str, Callable[[SetView, ReadOnlyTree], bool]]] = {
    "CloneSetAvailable": _is_available,
    "CloneSetPaused": _is_paused,
    "ProgressPartitionAvailable": _is_partition_available,
}
"""Why no progress is needed; the first reason that applies."""
_MESSAGES: Final[Mapping[str, str]] = {
    "CloneSetAvailable": "CloneSet is available",
    "CloneSetPaused": "CloneSet is paused",
    "ProgressPartitionAvailable": "CloneSet has been paused due to partition ready",
    _EXCEEDED: "CloneSet revision {revision} has timed out progressing",
    _UPDATED: "CloneSet is progressing",
}
