"""The status of a Deployment: the sums over its ReplicaSets, its conditions, and its progress deadline."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.conditions import Conditions, find, without
from mockube.apimachinery.timestamps import after, format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import DEPLOYMENTS
from mockube.controller_manager.control.actions import Update

from .state import DeploymentState, DeploymentView, ReplicaSetView

REPLICA_SET_CREATE_ERROR: Final = "ReplicaSetCreateError"
_NEW_REPLICA_SET_CREATED: Final = "NewReplicaSetCreated"
_FOUND_NEW_REPLICA_SET: Final = "FoundNewReplicaSet"
_REPLICA_SET_UPDATED: Final = "ReplicaSetUpdated"
_NEW_REPLICA_SET_AVAILABLE: Final = "NewReplicaSetAvailable"
_PROGRESS_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
_PAUSED: Final = "DeploymentPaused"
_RESUMED: Final = "DeploymentResumed"
_AVAILABLE: Final = (
    "True",
    "MinimumReplicasAvailable",
    "Deployment has minimum availability.",
)
_UNAVAILABLE: Final = (
    "False",
    "MinimumReplicasUnavailable",
    "Deployment does not have minimum availability.",
)

_COUNTS: Final = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
)

_CONDITION_TIME_RESOLUTION: Final = timedelta(seconds=1)
"""The resolution of times in conditions. It is added to the deadline, so that the deadline has certainly passed."""


def status_while_scaling(state: DeploymentState, present: Conditions, now: datetime) -> ReadOnlyTree:
    """Return the status while no rollout goes on. The condition Progressing does not change."""
    counts = _counts(state)
    return _status(state, counts, _with_availability(state, counts, present, now))


def status_while_rolling(state: DeploymentState, present: Conditions, now: datetime) -> ReadOnlyTree:
    counts = _counts(state)
    conditions = _with_availability(state, counts, present, now)
    conditions = _with_progress(state.deployment, state.new, counts, conditions, now)
    failure = _replica_failure((*([state.new] if state.new else []), *state.old_sets))
    if failure is None:
        return _status(state, counts, without(conditions, wellknown.CONDITION_REPLICA_FAILURE))
    return _status(state, counts, _with_condition(conditions, failure))


def write_status(deployment: DeploymentView, status: ReadOnlyTree, revision: str = "") -> tuple[Update, ...]:
    """Return the update of the status and of the revision's annotation; none if neither differs."""
    is_same_revision = revision in (
        "",
        meta.annotations(deployment.object).get(wellknown.ANNOTATION_REVISION, ""),
    )
    if is_same_revision and _without_zeros(status) == _without_zeros(deployment.status):
        return ()
    body = {**deployment.object, "status": _without_zeros(status)}
    if not is_same_revision:
        body = meta.with_annotations(body, {wellknown.ANNOTATION_REVISION: revision})
    return (Update(resource=DEPLOYMENTS, body=body, subresource="status"),)


def _without_zeros(status: ReadOnlyTree) -> ReadOnlyTree:
    """Return the status without zero counts and without an empty list of conditions, which a server may return."""
    return {field: value for field, value in status.items() if value or field not in (*_COUNTS, "conditions")}


def _counts(state: DeploymentState) -> dict[str, int]:
    available = sum(replica_set.available for replica_set in state.sets)
    return {
        "observedGeneration": meta.generation(state.deployment.object),
        "replicas": sum(replica_set.status_replicas for replica_set in state.sets),
        "updatedReplicas": state.new.status_replicas if state.new else 0,
        "readyReplicas": sum(replica_set.ready for replica_set in state.sets),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(replica_set.replicas for replica_set in state.sets) - available, 0),
    }


def _status(state: DeploymentState, counts: ReadOnlyTree, conditions: Conditions) -> ReadOnlyTree:
    """Return the status with its fields in the API's order, without absent ones."""
    fields: dict[str, Any] = {
        **{field: counts[field] or None for field in _COUNTS},
        "terminatingReplicas": _terminating(state.sets),
        "conditions": list(conditions) or None,
        "collisionCount": state.deployment.status.get("collisionCount"),
    }
    return {field: value for field, value in fields.items() if value is not None}


def _terminating(sets: Sequence[ReplicaSetView]) -> int | None:
    """Return the sum of the sets' terminating pods; None if a set does not report them, as the sum would be wrong."""
    counts = [replica_set.terminating for replica_set in sets if replica_set.terminating is not None]
    return sum(counts) if len(counts) == len(sets) else None


# --- progress


def is_complete(deployment: DeploymentView, status: ReadOnlyTree) -> bool:
    """Return whether all pods exist, are available and have the Deployment's template, and no other pods exist."""
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    generation = deployment.object["metadata"].get("generation") or 0
    return all(_count(status, field) == deployment.replicas for field in counts) and (
        _count(status, "observedGeneration") >= generation
    )


def with_pause_reason(deployment: DeploymentView, present: Conditions, now: datetime) -> Conditions:
    """Set the reason of the condition Progressing to paused or resumed.

    A pause stops the deadline, and its end restarts it. An exceeded deadline remains in the condition.
    """
    present_reason = _reason(present, wellknown.CONDITION_PROGRESSING)
    if deployment.progress_deadline is None or present_reason == _PROGRESS_DEADLINE_EXCEEDED:
        return present
    if deployment.is_paused == (present_reason == _PAUSED):
        return present
    reason, message = (
        (_PAUSED, "Deployment is paused") if deployment.is_paused else (_RESUMED, "Deployment is resumed")
    )
    return _with_condition(present, _progressing("Unknown", reason, message, now))


def with_found_new_replica_set(
    deployment: DeploymentView, new: ReplicaSetView, present: Conditions, now: datetime
) -> Conditions:
    """Add the condition Progressing if it is absent: the new set exists already."""
    if deployment.progress_deadline is None or find(present, wellknown.CONDITION_PROGRESSING) is not None:
        return present
    message = f'Found new replica set "{new.name}"'
    return _with_condition(present, _progressing("True", _FOUND_NEW_REPLICA_SET, message, now))


def with_created_new_replica_set(
    deployment: DeploymentView, name: str, present: Conditions, now: datetime
) -> Conditions:
    if deployment.progress_deadline is None:
        return present
    message = f'Created new replica set "{name}"'
    return _with_condition(present, _progressing("True", _NEW_REPLICA_SET_CREATED, message, now))


def with_replica_set_create_error(
    deployment: DeploymentView, name: str, error: object, now: datetime
) -> Conditions:
    present: Conditions = deployment.status.get("conditions") or ()
    if deployment.progress_deadline is None:
        return present
    message = f'Failed to create new replica set "{name}": {error}'
    return _with_condition(present, _progressing("False", REPLICA_SET_CREATE_ERROR, message, now))


def _with_progress(
    deployment: DeploymentView,
    new: ReplicaSetView | None,
    status: ReadOnlyTree,
    present: Conditions,
    now: datetime,
) -> Conditions:
    """Set the condition Progressing according to the counts of the status."""
    if deployment.progress_deadline is None:
        return without(present, wellknown.CONDITION_PROGRESSING)
    was_complete = _reason(present, wellknown.CONDITION_PROGRESSING) == _NEW_REPLICA_SET_AVAILABLE
    if was_complete and _count(status, "replicas") == _count(status, "updatedReplicas"):
        return present
    subject = f'Deployment "{deployment.name}"' if new is None else f'ReplicaSet "{new.name}"'
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return _with_condition(present, _progressing("True", _NEW_REPLICA_SET_AVAILABLE, message, now))
    if _has_progressed(deployment.status, status):
        # Replaced each time: the deadline counts from the condition's lastUpdateTime.
        message = f"{subject} is progressing."
        return _replace_condition(present, _progressing("True", _REPLICA_SET_UPDATED, message, now))
    if _is_deadline_exceeded(deployment, present, now):
        message = f"{subject} has timed out progressing."
        return _with_condition(present, _progressing("False", _PROGRESS_DEADLINE_EXCEEDED, message, now))
    return present


def _has_progressed(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    return (
        _count(new, "updatedReplicas") > _count(old, "updatedReplicas")
        or _outdated_count(new) < _outdated_count(old)
        or _count(new, "readyReplicas") > _count(old, "readyReplicas")
        or _count(new, "availableReplicas") > _count(old, "availableReplicas")
    )


def _outdated_count(status: ReadOnlyTree) -> int:
    return _count(status, "replicas") - _count(status, "updatedReplicas")


def _count(status: ReadOnlyTree, field: str) -> int:
    return status.get(field) or 0


def _is_deadline_exceeded(deployment: DeploymentView, present: Conditions, now: datetime) -> bool:
    condition, deadline = find(present, wellknown.CONDITION_PROGRESSING), deployment.progress_deadline
    if condition is None or deadline is None:
        return False
    if condition.get("reason") == _NEW_REPLICA_SET_AVAILABLE:
        return False  # the condition describes an earlier rollout, which is complete
    return condition.get("reason") == _PROGRESS_DEADLINE_EXCEEDED or now > _deadline_time(condition, deadline)


def _deadline_time(condition: ReadOnlyTree, deadline: timedelta) -> datetime:
    return after(parse_time(condition["lastUpdateTime"]), deadline)


def next_check(deployment: DeploymentView, status: ReadOnlyTree, now: datetime) -> timedelta | None:
    """Return the time until the deadline has passed: no watch event requeues the key then."""
    deadline = deployment.progress_deadline
    condition = find(status.get("conditions") or (), wellknown.CONDITION_PROGRESSING)
    if deadline is None or condition is None or is_complete(deployment, status):
        return None
    if condition.get("reason") == _PROGRESS_DEADLINE_EXCEEDED:
        return None
    return max(_deadline_time(condition, deadline) - now, timedelta()) + _CONDITION_TIME_RESOLUTION


# --- conditions


def _with_availability(
    state: DeploymentState, counts: ReadOnlyTree, present: Conditions, now: datetime
) -> Conditions:
    is_available = counts["availableReplicas"] >= state.deployment.min_available
    condition = _condition(
        wellknown.CONDITION_AVAILABLE, *(_AVAILABLE if is_available else _UNAVAILABLE), now
    )
    return _with_condition(present, condition)


def _replica_failure(sets: Sequence[ReplicaSetView]) -> ReadOnlyTree | None:
    """Return the condition ReplicaFailure of the first set that has one; the new set is first."""
    for replica_set in sets:
        set_conditions = (replica_set.object.get("status") or {}).get("conditions") or ()
        failure = find(set_conditions, wellknown.CONDITION_REPLICA_FAILURE)
        if failure is not None:
            return {**failure, "lastUpdateTime": failure.get("lastTransitionTime")}
    return None


def _progressing(status: str, reason: str, message: str, now: datetime) -> ReadOnlyTree:
    return _condition(wellknown.CONDITION_PROGRESSING, status, reason, message, now)


def _condition(condition_type: str, status: str, reason: str, message: str, now: datetime) -> ReadOnlyTree:
    time = format_time(now)
    return {
        "type": condition_type,
        "status": status,
        "lastUpdateTime": time,
        "lastTransitionTime": time,
        "reason": reason,
        "message": message,
    }


def _reason(conditions: Conditions, condition_type: str) -> str:
    condition = find(conditions, condition_type)
    return (condition or {}).get("reason") or ""


def _with_condition(conditions: Conditions, condition: ReadOnlyTree) -> Conditions:
    """Add or replace the condition; one with the same status and reason remains as it is."""
    old = find(conditions, condition["type"])
    if old is not None and (old["status"], old.get("reason")) == (condition["status"], condition["reason"]):
        return conditions
    return _replace_condition(conditions, condition)


def _replace_condition(conditions: Conditions, condition: ReadOnlyTree) -> Conditions:
    """Add or replace the condition. If its status is the same, it keeps its lastTransitionTime."""
    old = find(conditions, condition["type"])
    if old is not None and old["status"] == condition["status"]:
        since = old.get("lastTransitionTime") or condition["lastTransitionTime"]
        condition = {**condition, "lastTransitionTime": since}
    return [*without(conditions, condition["type"]), condition]
