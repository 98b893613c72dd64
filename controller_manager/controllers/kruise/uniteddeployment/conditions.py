"""The conditions of a UnitedDeployment and of its subsets, and the schedulability of subsets."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions as of_object
from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_POD_SCHEDULED
from mockube.controller_manager.client.podview import PENDING, PodView
from mockube.controller_manager.controllers.kruise.uniteddeployment.subset import (
    CONDITION_SCHEDULABLE,
    CONDITION_UPDATED,
)

Conditions = Sequence[ReadOnlyTree]

TRUE: Final = "True"
FALSE: Final = "False"

_REVISION_UPDATED: Final = ("UnitedDeploymentRevisionUpdated", "updated to revision {}")
_REVISION_UPDATING: Final = ("UnitedDeploymentRevisionUpdating", "updating to revision {}")


def find(conditions: Conditions, condition_type: str) -> ReadOnlyTree | None:
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def without(conditions: Conditions, condition_type: str) -> Conditions:
    return [condition for condition in conditions if condition.get("type") != condition_type]


def last_transition_time(condition: ReadOnlyTree) -> datetime:
    return parse_time(condition["lastTransitionTime"])


# --- conditions of a UnitedDeployment


def set_true(conditions: Conditions, condition_type: str, now: datetime) -> Conditions:
    """Set a condition to True, without a reason."""
    old = find(conditions, condition_type)
    if old is not None and old["status"] == TRUE and not old.get("reason"):
        return conditions
    since = old["lastTransitionTime"] if old is not None and old["status"] == TRUE else format_time(now)
    condition = {"type": condition_type, "status": TRUE, "lastTransitionTime": since}
    return [*without(conditions, condition_type), condition]


def set_updated_condition(conditions: Conditions, current: str, expected: str, now: datetime) -> Conditions:
    """Set the condition that shows whether all pods have the expected revision.

    Its message changes only with its status.
    """
    status, (reason, message) = (
        (TRUE, _REVISION_UPDATED) if current == expected else (FALSE, _REVISION_UPDATING)
    )
    old = find(conditions, CONDITION_UPDATED)
    if old is not None and old["status"] == status:
        return conditions
    condition = {
        "type": CONDITION_UPDATED,
        "status": status,
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message.format(expected),
    }
    return [*without(conditions, CONDITION_UPDATED), condition]


# --- conditions of a subset


def set_schedulable(
    conditions: Conditions, status: str, reason: str, message: str, now: datetime
) -> Conditions:
    """Set the condition Schedulable, unless its status and reason are the same."""
    old = find(conditions, CONDITION_SCHEDULABLE)
    if old is not None and (old["status"], old.get("reason")) == (status, reason):
        return conditions
    condition = {
        "type": CONDITION_SCHEDULABLE,
        "status": status,
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message,
    }
    return [*without(conditions, CONDITION_SCHEDULABLE), condition]


def is_unschedulable(conditions: Conditions) -> bool:
    condition = find(conditions, CONDITION_SCHEDULABLE)
    return condition is not None and condition["status"] == FALSE


def time_left(condition: ReadOnlyTree, period: timedelta, now: datetime) -> timedelta:
    """Return the rest of a period that began when the condition last changed; negative when it is over."""
    return last_transition_time(condition) + period - now


class SubsetCondition(Struct, frozen=True, kw_only=True):
    conditions: Conditions = ()
    """The subset's updated conditions."""
    unschedulable: bool = False
    was_unschedulable: bool = False
    """Whether its condition was unschedulable before this reconciliation."""
    pending: int = 0
    """The number of pods that have been unschedulable for too long."""
    reserved: int = 0
    """The number of reserved pods."""
    overdue: int = 0
    """The number of reserved pods whose update takes too long."""
    label_changes: tuple[tuple[PodView, bool], ...] = ()
    """The pods whose label `reserved` is written, with its value."""
    check_after: timedelta | None = None
    """The time after which the conditions may change although no object does."""


SCHEDULABLE = SubsetCondition()


def time_to_find_node(pod: PodView, critical: timedelta, now: datetime) -> timedelta | None:
    """Return how long a pod may still be unschedulable, at most 0 if it is too long; None if it is not unschedulable."""
    scheduled = of_object.get(pod.object, CONDITION_POD_SCHEDULED)
    is_unschedulable_pod = (
        scheduled is not None
        and scheduled["status"] == "False"
        and scheduled.get("reason") == "Unschedulable"
    )
    created = meta.creation_timestamp(pod.object)
    if not is_unschedulable_pod or pod.deleting or pod.phase != PENDING or pod.node or created is None:
        return None
    return created + critical - now
