"""Whether a rollout gets on: the condition Progressing, and the deadline by which something must have changed."""

from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery.timestamps import after, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_PROGRESSING
from mockube.controller_manager.controllers.deployment import conditions
from mockube.controller_manager.controllers.deployment.conditions import Conditions
from mockube.controller_manager.controllers.deployment.state import DeploymentView, SetView

_LATENESS: Final = timedelta(seconds=1)
"""Conditions have whole seconds; so much later the deadline has passed for certain."""


def is_complete(deployment: DeploymentView, status: ReadOnlyTree) -> bool:
    """All pods are there, available and of the template, and no old ones beside them."""
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    generation = deployment.object["metadata"].get("generation") or 0
    return all(_count(status, field) == deployment.replicas for field in counts) and (
        _count(status, "observedGeneration") >= generation
    )


def with_pause_reason(deployment: DeploymentView, present: Conditions, now: datetime) -> Conditions:
    """A pause stops the deadline, and its end restarts it. An exceeded deadline stays in the condition."""
    reason = conditions.reason_of(present, CONDITION_PROGRESSING)
    if deployment.progress_deadline is None or reason == conditions.PROGRESS_DEADLINE_EXCEEDED:
        return present
    if deployment.is_paused == (reason == conditions.DEPLOYMENT_PAUSED):
        return present
    reason, message = (
        (conditions.DEPLOYMENT_PAUSED, "Deployment is paused")
        if deployment.is_paused
        else (conditions.DEPLOYMENT_RESUMED, "Deployment is resumed")
    )
    return conditions.with_condition(present, conditions.progressing("Unknown", reason, message, now))


def with_found_set(
    deployment: DeploymentView, new: SetView, present: Conditions, now: datetime
) -> Conditions:
    """The condition of a rollout without one, whose set exists already."""
    if deployment.progress_deadline is None or conditions.find(present, CONDITION_PROGRESSING) is not None:
        return present
    message = f'Found new replica set "{new.name}"'
    condition = conditions.progressing("True", conditions.FOUND_NEW_REPLICA_SET, message, now)
    return conditions.with_condition(present, condition)


def with_new_set(deployment: DeploymentView, name: str, present: Conditions, now: datetime) -> Conditions:
    if deployment.progress_deadline is None:
        return present
    message = f'Created new replica set "{name}"'
    condition = conditions.progressing("True", conditions.NEW_REPLICA_SET_CREATED, message, now)
    return conditions.with_condition(present, condition)


def not_created(deployment: DeploymentView, name: str, error: object, now: datetime) -> Conditions:
    present: Conditions = deployment.status.get("conditions") or ()
    if deployment.progress_deadline is None:
        return present
    message = f'Failed to create new replica set "{name}": {error}'
    condition = conditions.progressing("False", conditions.REPLICA_SET_CREATE_ERROR, message, now)
    return conditions.with_condition(present, condition)


def progress_conditions(
    deployment: DeploymentView, new: SetView | None, status: ReadOnlyTree, present: Conditions, now: datetime
) -> Conditions:
    """Update the conditions by the counts of the status."""
    if deployment.progress_deadline is None:
        return conditions.without(present, CONDITION_PROGRESSING)
    was_done = conditions.reason_of(present, CONDITION_PROGRESSING) == conditions.NEW_REPLICA_SET_AVAILABLE
    if was_done and _count(status, "replicas") == _count(status, "updatedReplicas"):
        return present
    subject = f'Deployment "{deployment.name}"' if new is None else f'ReplicaSet "{new.name}"'
    if is_complete(deployment, status):
        reason, message = conditions.NEW_REPLICA_SET_AVAILABLE, f"{subject} has successfully progressed."
        return conditions.with_condition(present, conditions.progressing("True", reason, message, now))
    if _gets_on(deployment.status, status):
        reason, message = conditions.REPLICA_SET_UPDATED, f"{subject} is progressing."
        # Replaced each time: the deadline is counted from its time.
        return conditions.replace_condition(present, conditions.progressing("True", reason, message, now))
    if _is_late(deployment, present, now):
        reason, message = conditions.PROGRESS_DEADLINE_EXCEEDED, f"{subject} has timed out progressing."
        return conditions.with_condition(present, conditions.progressing("False", reason, message, now))
    return present


def _gets_on(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
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


def _is_late(deployment: DeploymentView, present: Conditions, now: datetime) -> bool:
    condition, deadline = conditions.find(present, CONDITION_PROGRESSING), deployment.progress_deadline
    if condition is None or deadline is None:
        return False
    if condition.get("reason") == conditions.NEW_REPLICA_SET_AVAILABLE:
        return False  # of a rollout that had ended before this one began
    return condition.get("reason") == conditions.PROGRESS_DEADLINE_EXCEEDED or now > _deadline_time(
        condition, deadline
    )


def _deadline_time(condition: ReadOnlyTree, deadline: timedelta) -> datetime:
    return after(parse_time(condition["lastUpdateTime"]), deadline)


def next_check(deployment: DeploymentView, status: ReadOnlyTree, now: datetime) -> timedelta | None:
    """When to look again whether the time is over: nothing in the cluster changes then."""
    deadline = deployment.progress_deadline
    condition = conditions.find(status.get("conditions") or (), CONDITION_PROGRESSING)
    if deadline is None or condition is None or is_complete(deployment, status):
        return None
    if condition.get("reason") == conditions.PROGRESS_DEADLINE_EXCEEDED:
        return None
    return max(_deadline_time(condition, deadline) - now, timedelta()) + _LATENESS
