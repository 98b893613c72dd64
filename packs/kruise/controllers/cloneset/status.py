"""The status of a CloneSet: counts, revisions and conditions. It describes observed pods, not planned ones."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, meta, timestamps
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.control.actions import Update
from mockube.packs.kruise.inplace.update import is_in_service
from mockube.packs.kruise.kinds import CLONE_SETS

from .spec import CloneSetView
from .state import CloneSetState

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
_PROGRESS_COUNTS: Final = ("updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas")
"""The counts that grow as a rollout progresses."""


class FailureCondition(NamedTuple):
    """The condition of a failure, `FailedScale` or `FailedUpdate`, and its message."""

    type: str
    message: str


def of(state: CloneSetState, collision_count: int, failure: FailureCondition | None) -> dict[str, Any]:
    """Return the status. A failure condition remains until another one replaces it: upstream never removes it."""
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
    """Return the revisions. The update revision becomes the current one when all pods have it, ready or not."""
    replicas = state.owner.limits.replicas
    is_rolled_out = all(map(state.is_updated, state.pods)) and len(state.pods) == replicas
    return {
        "observedGeneration": meta.generation(state.owner.object),
        "currentRevision": state.update_name if is_rolled_out else state.current_name,
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


_OMITTED_IF_ZERO: Final = ("updatedAvailableReplicas", "expectedUpdatedReplicas")
"""Go encodes the other counts even if they are 0."""


def status_update(state: CloneSetState, new: ReadOnlyTree) -> tuple[Update, ...]:
    """Return the update of the status; none if the status is the same."""
    old = state.owner.status
    if _is_same_status(old, new):
        return ()
    status = {
        name: value for name, value in {**old, **new}.items() if value != 0 or name not in _OMITTED_IF_ZERO
    }
    body = {**state.owner.object, "status": status}
    return (Update(resource=CLONE_SETS, body=body, subresource="status"),)


def _is_same_status(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    """Return whether two statuses are equal. An absent count is 0, and messages of conditions are not compared."""
    return _condition_keys(old) == _condition_keys(new) and all(
        (old.get(field) or 0) == value for field, value in new.items() if field != "conditions"
    )


def _condition_keys(status: ReadOnlyTree) -> Sequence[tuple[Any, ...]]:
    fields = ("type", "status", "reason", "lastUpdateTime")
    return [tuple(condition.get(field) for field in fields) for condition in status.get("conditions") or ()]


# --- the condition Progressing, if the spec has a deadline


def progressing_condition(owner: CloneSetView, status: ReadOnlyTree, now: datetime) -> dict[str, Any] | None:
    """Return the condition for a status; None without a deadline."""
    if owner.progress_deadline_seconds is None:
        return None
    old = conditions.get(owner.object, PROGRESSING) or {}
    reason = _reason(owner, status, old, now)
    is_changed = reason != old.get("reason") or (reason == _UPDATED and _has_progressed(owner.status, status))
    return {
        "type": PROGRESSING,
        "status": "False" if reason == _EXCEEDED else "True",
        "lastUpdateTime": timestamps.format_time(now)
        if is_changed
        else old.get("lastUpdateTime") or timestamps.format_time(now),
        "reason": reason,
        "message": _MESSAGES[reason].format(revision=status["updateRevision"]),
    }


def progress_deadline(owner: CloneSetView, progressing: ReadOnlyTree | None) -> datetime | None:
    """Return the time of the progress deadline; None if it does not apply now."""
    if (
        owner.progress_deadline_seconds is None
        or progressing is None
        or progressing.get("reason") != _UPDATED
    ):
        return None
    return timestamps.after(
        timestamps.parse_time(progressing["lastUpdateTime"]),
        timestamps.span_of(owner.progress_deadline_seconds),
    )


def _reason(owner: CloneSetView, status: ReadOnlyTree, old: ReadOnlyTree, now: datetime) -> str:
    for reason, holds in _REASONS_WITHOUT_DEADLINE.items():
        if holds(owner, status):
            return reason
    if owner.status.get("updateRevision") != status["updateRevision"]:
        return _UPDATED
    if old.get("reason") == _EXCEEDED:
        return _EXCEEDED  # until the revision changes or the rollout is complete
    due = progress_deadline(owner, old)
    is_late = due is not None and due <= now and not _has_progressed(owner.status, status)
    return _EXCEEDED if is_late else _UPDATED


def _has_progressed(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    if old.get("updateRevision") != new["updateRevision"]:
        return True
    old_pods, new_pods = (
        (status.get("replicas") or 0) - (status.get("updatedReplicas") or 0) for status in (old, new)
    )
    return new_pods < old_pods or any(new[count] > (old.get(count) or 0) for count in _PROGRESS_COUNTS)


# --- the reasons of that condition


def _is_available(owner: CloneSetView, status: ReadOnlyTree) -> bool:
    is_rolled_out = status["currentRevision"] == status["updateRevision"]
    return is_rolled_out and all(status[count] == owner.limits.replicas for count in _POD_COUNTS)


def _is_paused(owner: CloneSetView, _: ReadOnlyTree) -> bool:
    return owner.paused


def _is_partition_available(owner: CloneSetView, status: ReadOnlyTree) -> bool:
    expected: int = status["expectedUpdatedReplicas"]
    return expected < owner.limits.replicas and expected <= status["updatedAvailableReplicas"]


_REASONS_WITHOUT_DEADLINE: Final[Mapping[str, Callable[[CloneSetView, ReadOnlyTree], bool]]] = {
    "CloneSetAvailable": _is_available,
    "CloneSetPaused": _is_paused,
    "ProgressPartitionAvailable": _is_partition_available,
}
"""The reasons for which the deadline does not apply; the first that holds is used."""
_MESSAGES: Final[Mapping[str, str]] = {
    "CloneSetAvailable": "CloneSet is available",
    "CloneSetPaused": "CloneSet is paused",
    "ProgressPartitionAvailable": "CloneSet has been paused due to partition ready",
    _EXCEEDED: "CloneSet revision {revision} has timed out progressing",
    _UPDATED: "CloneSet is progressing",
}
