"""The conditions of a Deployment: how one is set, and their reasons."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    CONDITION_AVAILABLE,
    CONDITION_PROGRESSING,
    CONDITION_REPLICA_FAILURE,
)
from mockube.controller_manager.controllers.deployment.state import SetView

NEW_REPLICA_SET_CREATED: Final = "NewReplicaSetCreated"
FOUND_NEW_REPLICA_SET: Final = "FoundNewReplicaSet"
REPLICA_SET_CREATE_ERROR: Final = "ReplicaSetCreateError"
REPLICA_SET_UPDATED: Final = "ReplicaSetUpdated"
NEW_REPLICA_SET_AVAILABLE: Final = "NewReplicaSetAvailable"
PROGRESS_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
DEPLOYMENT_PAUSED: Final = "DeploymentPaused"
DEPLOYMENT_RESUMED: Final = "DeploymentResumed"
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

Conditions = Sequence[ReadOnlyTree]


def find(conditions: Conditions, condition_type: str) -> ReadOnlyTree | None:
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def reason_of(conditions: Conditions, condition_type: str) -> str:
    condition = find(conditions, condition_type)
    return (condition or {}).get("reason") or ""


def without(conditions: Conditions, condition_type: str) -> Conditions:
    return [condition for condition in conditions if condition.get("type") != condition_type]


def with_condition(conditions: Conditions, condition: ReadOnlyTree) -> Conditions:
    """Set the condition unless status and reason are the same; an unchanged status keeps its lastTransitionTime."""
    old = find(conditions, condition["type"])
    if old is not None and (old["status"], old.get("reason")) == (condition["status"], condition["reason"]):
        return conditions
    return replace_condition(conditions, condition)


def replace_condition(conditions: Conditions, condition: ReadOnlyTree) -> Conditions:
    """Replace the condition, whatever it was."""
    old = find(conditions, condition["type"])
    if old is not None and old["status"] == condition["status"]:
        since = old.get("lastTransitionTime") or condition["lastTransitionTime"]
        condition = {**condition, "lastTransitionTime": since}
    return [*without(conditions, condition["type"]), condition]


def progressing(status: str, reason: str, message: str, now: datetime) -> ReadOnlyTree:
    return _condition(CONDITION_PROGRESSING, status, reason, message, now)


def available(*, is_available: bool, now: datetime) -> ReadOnlyTree:
    return _condition(CONDITION_AVAILABLE, *(_AVAILABLE if is_available else _UNAVAILABLE), now)


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


def replica_failure(sets: Sequence[SetView]) -> ReadOnlyTree | None:
    """The ReplicaFailure condition of the first set that has one; the new set is first."""
    for replica_set in sets:
        failure = find(
            (replica_set.object.get("status") or {}).get("conditions") or (), CONDITION_REPLICA_FAILURE
        )
        if failure is not None:
            return {**failure, "lastUpdateTime": failure.get("lastTransitionTime")}
    return None
