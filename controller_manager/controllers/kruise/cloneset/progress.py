"""The condition Progressing of a CloneSet, where its spec has a deadline."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions
from mockube.apimachinery.timestamps import after, format_time, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.controllers.kruise.cloneset.spec import SetView

PROGRESSING: Final = "Progressing"

_UPDATED: Final = "CloneSetUpdated"
_EXCEEDED: Final = "ProgressDeadlineExceeded"
_COUNTS: Final = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "updatedReplicas",
    "updatedReadyReplicas",
    "updatedAvailableReplicas",
)
_SIGNS: Final = ("updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas")
"""The counts that grow as a rollout progresses."""


def condition(owner: SetView, status: ReadOnlyTree, now: datetime) -> dict[str, Any] | None:
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


def deadline(owner: SetView, progressing: ReadOnlyTree | None) -> datetime | None:
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
    due = deadline(owner, old)
    is_late = due is not None and due <= now and not _has_progressed(owner.status, status)
    return _EXCEEDED if is_late else _UPDATED


def _has_progressed(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    if old.get("updateRevision") != new["updateRevision"]:
        return True
    old_pods, new_pods = (
        (status.get("replicas") or 0) - (status.get("updatedReplicas") or 0) for status in (old, new)
    )
    return new_pods < old_pods or any(new[count] > (old.get(count) or 0) for count in _SIGNS)


# --- its reasons


def _is_available(owner: SetView, status: ReadOnlyTree) -> bool:
    is_one = status["currentRevision"] == status["updateRevision"]
    return is_one and all(status[count] == owner.limits.replicas for count in _COUNTS)


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
