"""Move pods to other subsets when they are unschedulable, by the strategy of the UnitedDeployment.

Adaptive: a subset with pending pods is avoided for a while. Reserved: pods that are pending, or whose update takes too
long, stay, and others replace them until they run.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.timestamps import after
from mockube.controller_manager.client.podview import RUNNING, PodView
from mockube.controller_manager.controllers.kruise.uniteddeployment import conditions as conditions_of
from mockube.controller_manager.controllers.kruise.uniteddeployment.conditions import (
    FALSE,
    TRUE,
    Conditions,
    SubsetCondition,
    time_to_find_node,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.spec import Schedule, UnitedView
from mockube.controller_manager.controllers.kruise.uniteddeployment.subset import (
    CONDITION_SCHEDULABLE,
    CONDITION_UPDATED,
    LABEL_RESERVED_POD,
    Subset,
    revision_of,
)

_NO_WAIT = timedelta()


def check_schedulability(
    subset: Subset, schedule: Schedule, conditions: Conditions, now: datetime
) -> SubsetCondition:
    marked = conditions_of.is_unschedulable(conditions)
    avoided_for = _avoided_for(schedule, conditions, now) if marked else _NO_WAIT
    if marked and avoided_for <= _NO_WAIT:
        conditions = _recover(schedule, conditions, now)
    waits = _remaining_waits(subset, schedule, now)
    pending = sum(wait <= _NO_WAIT for wait in waits)
    checks = [wait for wait in (avoided_for, *waits) if wait > _NO_WAIT]
    if pending:
        message = "timeout pending pods found"
        conditions = conditions_of.schedulable(conditions, FALSE, "reschedule", message, now)
        checks.append(schedule.unschedulable)
    return SubsetCondition(
        conditions=conditions,
        unschedulable=bool(pending) or avoided_for > _NO_WAIT,
        marked=marked,
        pending=pending,
        check_after=soonest(checks),
    )


def _avoided_for(schedule: Schedule, conditions: Conditions, now: datetime) -> timedelta:
    condition = conditions_of.find(conditions, CONDITION_SCHEDULABLE)
    assert condition is not None  # the subset is marked as unschedulable
    return conditions_of.time_left(condition, schedule.unschedulable, now)


def _recover(schedule: Schedule, conditions: Conditions, now: datetime) -> Conditions:
    seconds = schedule.unschedulable.total_seconds()
    message = f"unschedulable subset recovered after {seconds:f} seconds"
    return conditions_of.schedulable(conditions, TRUE, "recover", message, now)


def _remaining_waits(subset: Subset, schedule: Schedule, now: datetime) -> list[timedelta]:
    """What remains to each pod that looks for a node."""
    if subset.ready_replicas >= subset.replicas:
        return []
    waits = (time_to_find_node(pod, schedule.critical, now) for pod in subset.pods)
    return [wait for wait in waits if wait is not None]


def soonest(waits: Iterable[timedelta | None]) -> timedelta | None:
    return min((wait for wait in waits if wait is not None and wait > _NO_WAIT), default=None)


_NO_TIME: Final = timedelta()
_RESCHEDULE: Final = "reschedule"


class Rollout(Struct, frozen=True, kw_only=True):
    """What pods are to be, and since when."""

    expected: str
    """The revision."""
    since: datetime


class ReschedulingDecision(NamedTuple):
    reserved: bool
    check_after: timedelta | None = None
    overdue: bool = False


def check_reservation(
    subset: Subset, schedule: Schedule, rollout: Rollout, conditions: Conditions, now: datetime
) -> SubsetCondition:
    marked = conditions_of.is_unschedulable(conditions)
    outcomes = [_decide_for(pod, schedule, rollout, now, marked=marked) for pod in subset.pods]
    reserved = sum(outcome.reserved for outcome in outcomes)
    status, message = (FALSE, "reserved pods found") if reserved else (TRUE, "no reserved pods")
    return SubsetCondition(
        conditions=conditions_of.schedulable(conditions, status, _RESCHEDULE, message, now),
        unschedulable=reserved > 0,
        marked=marked,
        reserved=reserved,
        overdue=sum(outcome.overdue for outcome in outcomes),
        marks=_marks(subset.pods, outcomes),
        check_after=soonest(outcome.check_after for outcome in outcomes),
    )


def reserve_new_pods(subset_condition: SubsetCondition, now: datetime) -> SubsetCondition:
    """Of a subset that has just recovered and gets more pods: the new ones begin as reserved, until they run."""
    message = "subset just recovered scaled up"
    return replace(
        subset_condition,
        conditions=conditions_of.schedulable(subset_condition.conditions, FALSE, _RESCHEDULE, message, now),
    )


def _marks(
    pods: Sequence[PodView], outcomes: Sequence[ReschedulingDecision]
) -> tuple[tuple[PodView, bool], ...]:
    pairs = zip(pods, outcomes, strict=True)
    return tuple(
        (pod, reserved)
        for pod, (reserved, _, _) in pairs
        if pod.labels.get(LABEL_RESERVED_POD) != ("true" if reserved else "false")
    )


def _decide_for(
    pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime, *, marked: bool
) -> ReschedulingDecision:
    if marked and LABEL_RESERVED_POD not in pod.labels:
        return ReschedulingDecision(reserved=True, check_after=schedule.unschedulable)
    return reschedule_decision(pod, schedule, rollout, now)


def reschedule_decision(
    pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime
) -> ReschedulingDecision:
    """Whether a pod is reserved, and when that may have changed though nothing happens."""
    if pod.labels.get(LABEL_RESERVED_POD) == "true":
        return _of_reserved(pod, schedule, rollout, now)
    if revision_of(pod) == rollout.expected:
        return _of_updated(pod, schedule, now)
    return _of_outdated(pod, schedule, rollout, now)


def _of_reserved(pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime) -> ReschedulingDecision:
    runs = pod.phase == RUNNING and revision_of(pod) == rollout.expected
    if not runs or pod.ready_since is None:
        return ReschedulingDecision(reserved=True, check_after=schedule.unschedulable)
    remaining = after(pod.ready_since, schedule.unschedulable) - now
    return (
        ReschedulingDecision(reserved=True, check_after=remaining)
        if remaining > _NO_TIME
        else ReschedulingDecision(reserved=False)
    )


def _of_updated(pod: PodView, schedule: Schedule, now: datetime) -> ReschedulingDecision:
    wait = time_to_find_node(pod, schedule.critical, now)
    if wait is not None and wait <= _NO_TIME:
        return ReschedulingDecision(reserved=True, check_after=schedule.unschedulable)
    return ReschedulingDecision(reserved=False, check_after=wait)


def _of_outdated(pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime) -> ReschedulingDecision:
    if pod.deleting:
        return ReschedulingDecision(reserved=False)
    remaining = rollout.since + schedule.critical - now
    if remaining > _NO_TIME:
        return ReschedulingDecision(reserved=False, check_after=remaining)
    return ReschedulingDecision(reserved=True, check_after=schedule.unschedulable, overdue=True)


def subset_conditions(
    view: UnitedView, subsets: Mapping[str, Subset], present: Conditions, expected: str, now: datetime
) -> Mapping[str, SubsetCondition]:
    """Of all subsets that have a place in the status, and of those that get one."""
    conditions_by_subset = _known_conditions(view, now)
    updated = conditions_of.find(present, CONDITION_UPDATED)
    assert updated is not None  # it is set before
    rollout = Rollout(expected=expected, since=conditions_of.transition(updated))
    return {
        name: _look(view, subsets.get(name), rollout, conditions, now)
        for name, conditions in conditions_by_subset.items()
    }


def _known_conditions(view: UnitedView, now: datetime) -> Mapping[str, Conditions]:
    """The conditions of each, in the order of the status. Subsets that were taken out keep their places there."""
    conditions_by_subset = {
        entry["name"]: entry.get("conditions") or () for entry in view.status.get("subsetStatuses") or ()
    }
    begin = _of_newcomer(now) if conditions_by_subset and view.schedule.reserves else ()
    return conditions_by_subset | {
        subset.name: begin for subset in view.subsets if subset.name not in conditions_by_subset
    }


def _of_newcomer(now: datetime) -> Conditions:
    message = "newly-created subsets in reservation strategy"
    return conditions_of.schedulable((), FALSE, "created", message, now)


def _look(
    view: UnitedView, subset: Subset | None, rollout: Rollout, conditions: Conditions, now: datetime
) -> SubsetCondition:
    schedule = view.schedule
    if subset is None or not schedule.is_adaptive:
        return SubsetCondition(conditions=conditions)
    if schedule.reserves:
        return check_reservation(subset, schedule, rollout, conditions, now)
    return check_schedulability(subset, schedule, conditions, now)
