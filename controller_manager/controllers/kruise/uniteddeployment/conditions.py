"""The conditions of a UnitedDeployment and of its subsets, and the schedulability of a subset that they report."""

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


def transition(condition: ReadOnlyTree) -> datetime:
    return parse_time(condition["lastTransitionTime"])


# --- of a UnitedDeployment


def with_true(conditions: Conditions, condition_type: str, now: datetime) -> Conditions:
    """With a condition that is true, and needs no reason."""
    old = find(conditions, condition_type)
    if old is not None and old["status"] == TRUE and not old.get("reason"):
        return conditions
    since = old["lastTransitionTime"] if old is not None and old["status"] == TRUE else format_time(now)
    condition = {"type": condition_type, "status": TRUE, "lastTransitionTime": since}
    return [*without(conditions, condition_type), condition]


def updated_condition(conditions: Conditions, current: str, expected: str, now: datetime) -> Conditions:
    """Whether all pods have the expected revision; the message names it only when it changes."""
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


# --- of a subset


def schedulable(conditions: Conditions, status: str, reason: str, message: str, now: datetime) -> Conditions:
    """Set the Schedulable condition, unless its reason is the same."""
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
    """Of a period that began when the condition last changed; negative once it is over."""
    return transition(condition) + period - now


class SubsetCondition(Struct, frozen=True, kw_only=True):
    conditions: Conditions = ()
    """The subset's updated conditions."""
    unschedulable: bool = False
    marked: bool = False
    """Whether it was marked as unschedulable before."""
    pending: int = 0
    """Pods that have found no node for too long."""
    reserved: int = 0
    overdue: int = 0
    """Reserved pods whose update takes too long."""
    marks: tuple[tuple[PodView, bool], ...] = ()
    """Pods whose reserved label is to be written."""
    check_after: timedelta | None = None


FREE = SubsetCondition()


def time_to_find_node(pod: PodView, critical: timedelta, now: datetime) -> timedelta | None:
    """Until it has found none for too long, which it has if nothing remains; None if it is not looking for one."""
    scheduled = of_object.get(pod.object, CONDITION_POD_SCHEDULED)
    is_refused = (
        scheduled is not None
        and scheduled["status"] == "False"
        and scheduled.get("reason") == "Unschedulable"
    )
    created = meta.creation_timestamp(pod.object)
    if not is_refused or pod.deleting or pod.phase != PENDING or pod.node or created is None:
        return None
    return created + critical - now
