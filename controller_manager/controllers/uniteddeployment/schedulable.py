"""Avoid a subset in which pods find no node, for a while."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from controller_manager.controllers.uniteddeployment import conditions as conditions_of
from controller_manager.controllers.uniteddeployment.conditions import FALSE, TRUE, Conditions
from controller_manager.controllers.uniteddeployment.names import CONDITION_SCHEDULABLE
from controller_manager.controllers.uniteddeployment.standing import Standing, time_to_find_node
from controller_manager.controllers.uniteddeployment.subset import Subset
from controller_manager.controllers.uniteddeployment.views import Schedule

_NOTHING = timedelta()


def look(subset: Subset, schedule: Schedule, conditions: Conditions, now: datetime) -> Standing:
    marked = conditions_of.is_unschedulable(conditions)
    avoided_for = _avoided_for(schedule, conditions, now) if marked else _NOTHING
    if marked and avoided_for <= _NOTHING:
        conditions = _recovered(schedule, conditions, now)
    waits = _waits(subset, schedule, now)
    pending = sum(wait <= _NOTHING for wait in waits)
    checks = [wait for wait in (avoided_for, *waits) if wait > _NOTHING]
    if pending:
        message = "timeout pending pods found"
        conditions = conditions_of.schedulable(conditions, FALSE, "reschedule", message, now)
        checks.append(schedule.unschedulable)
    return Standing(
        conditions=conditions,
        unschedulable=bool(pending) or avoided_for > _NOTHING,
        marked=marked,
        pending=pending,
        check_after=soonest(checks),
    )


def _avoided_for(schedule: Schedule, conditions: Conditions, now: datetime) -> timedelta:
    condition = conditions_of.find(conditions, CONDITION_SCHEDULABLE)
    assert condition is not None  # it says that the subset is to be avoided
    return conditions_of.remaining(condition, schedule.unschedulable, now)


def _recovered(schedule: Schedule, conditions: Conditions, now: datetime) -> Conditions:
    seconds = schedule.unschedulable.total_seconds()
    message = f"unschedulable subset recovered after {seconds:f} seconds"
    return conditions_of.schedulable(conditions, TRUE, "recover", message, now)


def _waits(subset: Subset, schedule: Schedule, now: datetime) -> list[timedelta]:
    """What remains to each pod that looks for a node."""
    if subset.ready_replicas >= subset.replicas:
        return []
    found = (time_to_find_node(pod, schedule.critical, now) for pod in subset.pods)
    return [wait for wait in found if wait is not None]


def soonest(waits: Iterable[timedelta | None]) -> timedelta | None:
    return min((wait for wait in waits if wait is not None and wait > _NOTHING), default=None)
