"""Rescheduling of unschedulable pods to other subsets, by the strategy of the UnitedDeployment.

Adaptive: a subset with unschedulable pods is avoided for a while. Reserved: pods that are unschedulable, or whose update
takes too long, stay, and have replacements in other subsets until they run.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions as conditions_of
from mockube.apimachinery import meta
from mockube.apimachinery.conditions import Conditions
from mockube.apimachinery.timestamps import after, format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_POD_SCHEDULED
from mockube.client.podview import PENDING, RUNNING, PodView

from .spec import Schedule, UnitedView
from .subset import CONDITION_SCHEDULABLE, CONDITION_UPDATED, LABEL_RESERVED_POD, Subset, revision_of

_NO_WAIT = timedelta()
_RESCHEDULE: Final = "reschedule"


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


# --- Adaptive


def check_schedulability(
    subset: Subset, schedule: Schedule, conditions: Conditions, now: datetime
) -> SubsetCondition:
    """Return whether a subset has unschedulable pods, or had some a short time ago."""
    was_unschedulable = _is_unschedulable(conditions)
    unschedulable_for = (
        _remaining_unschedulable_time(schedule, conditions, now) if was_unschedulable else _NO_WAIT
    )
    if was_unschedulable and unschedulable_for <= _NO_WAIT:
        conditions = _recover(schedule, conditions, now)
    waits = _remaining_waits(subset, schedule, now)
    pending = sum(wait <= _NO_WAIT for wait in waits)
    checks = [wait for wait in (unschedulable_for, *waits) if wait > _NO_WAIT]
    if pending:
        message = "timeout pending pods found"
        conditions = _set_schedulable(conditions, "False", _RESCHEDULE, message, now)
        checks.append(schedule.unschedulable)
    return SubsetCondition(
        conditions=conditions,
        unschedulable=bool(pending) or unschedulable_for > _NO_WAIT,
        was_unschedulable=was_unschedulable,
        pending=pending,
        check_after=soonest(checks),
    )


def _remaining_unschedulable_time(schedule: Schedule, conditions: Conditions, now: datetime) -> timedelta:
    condition = conditions_of.find(conditions, CONDITION_SCHEDULABLE)
    assert condition is not None  # the subset was unschedulable
    return _time_left(condition, schedule.unschedulable, now)


def _recover(schedule: Schedule, conditions: Conditions, now: datetime) -> Conditions:
    seconds = schedule.unschedulable.total_seconds()
    message = f"unschedulable subset recovered after {seconds:f} seconds"
    return _set_schedulable(conditions, "True", "recover", message, now)


def _remaining_waits(subset: Subset, schedule: Schedule, now: datetime) -> list[timedelta]:
    """Return for each unschedulable pod how long it may still be unschedulable."""
    if subset.ready_replicas >= subset.replicas:
        return []
    waits = (time_to_find_node(pod, schedule.critical, now) for pod in subset.pods)
    return [wait for wait in waits if wait is not None]


def soonest(waits: Iterable[timedelta | None]) -> timedelta | None:
    """Return the shortest positive wait."""
    return min((wait for wait in waits if wait is not None and wait > _NO_WAIT), default=None)


# --- Reserved


class Rollout(Struct, frozen=True, kw_only=True):
    """The revision that pods are updated to, and the start of the rollout."""

    expected: str
    """The name of the revision."""
    since: datetime


class ReschedulingDecision(NamedTuple):
    reserved: bool
    check_after: timedelta | None = None
    overdue: bool = False


def check_reservation(
    subset: Subset, schedule: Schedule, rollout: Rollout, conditions: Conditions, now: datetime
) -> SubsetCondition:
    """Return which pods of a subset are reserved."""
    was_unschedulable = _is_unschedulable(conditions)
    outcomes = [
        _decide_for(pod, schedule, rollout, now, was_unschedulable=was_unschedulable) for pod in subset.pods
    ]
    reserved = sum(outcome.reserved for outcome in outcomes)
    status, message = ("False", "reserved pods found") if reserved else ("True", "no reserved pods")
    return SubsetCondition(
        conditions=_set_schedulable(conditions, status, _RESCHEDULE, message, now),
        unschedulable=reserved > 0,
        was_unschedulable=was_unschedulable,
        reserved=reserved,
        overdue=sum(outcome.overdue for outcome in outcomes),
        label_changes=_label_changes(subset.pods, outcomes),
        check_after=soonest(outcome.check_after for outcome in outcomes),
    )


def reserve_new_pods(subset_condition: SubsetCondition, now: datetime) -> SubsetCondition:
    """Mark a recovered subset that gets more pods as unschedulable: its new pods are reserved until they run."""
    message = "subset just recovered scaled up"
    return replace(
        subset_condition,
        conditions=_set_schedulable(subset_condition.conditions, "False", _RESCHEDULE, message, now),
    )


def _label_changes(
    pods: Sequence[PodView], outcomes: Sequence[ReschedulingDecision]
) -> tuple[tuple[PodView, bool], ...]:
    pairs = zip(pods, outcomes, strict=True)
    return tuple(
        (pod, reserved)
        for pod, (reserved, _, _) in pairs
        if pod.labels.get(LABEL_RESERVED_POD) != ("true" if reserved else "false")
    )


def _decide_for(
    pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime, *, was_unschedulable: bool
) -> ReschedulingDecision:
    if was_unschedulable and LABEL_RESERVED_POD not in pod.labels:
        return ReschedulingDecision(reserved=True, check_after=schedule.unschedulable)
    return reschedule_decision(pod, schedule, rollout, now)


def reschedule_decision(
    pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime
) -> ReschedulingDecision:
    """Return whether a pod is reserved, and after which time that may change although no object does."""
    if pod.labels.get(LABEL_RESERVED_POD) == "true":
        return _decide_for_reserved(pod, schedule, rollout, now)
    if revision_of(pod) == rollout.expected:
        return _decide_for_updated(pod, schedule, now)
    return _decide_for_outdated(pod, schedule, rollout, now)


def _decide_for_reserved(
    pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime
) -> ReschedulingDecision:
    runs = pod.phase == RUNNING and revision_of(pod) == rollout.expected
    if not runs or pod.ready_since is None:
        return ReschedulingDecision(reserved=True, check_after=schedule.unschedulable)
    remaining = after(pod.ready_since, schedule.unschedulable) - now
    return (
        ReschedulingDecision(reserved=True, check_after=remaining)
        if remaining > _NO_WAIT
        else ReschedulingDecision(reserved=False)
    )


def _decide_for_updated(pod: PodView, schedule: Schedule, now: datetime) -> ReschedulingDecision:
    wait = time_to_find_node(pod, schedule.critical, now)
    if wait is not None and wait <= _NO_WAIT:
        return ReschedulingDecision(reserved=True, check_after=schedule.unschedulable)
    return ReschedulingDecision(reserved=False, check_after=wait)


def _decide_for_outdated(
    pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime
) -> ReschedulingDecision:
    if pod.deleting:
        return ReschedulingDecision(reserved=False)
    remaining = rollout.since + schedule.critical - now
    if remaining > _NO_WAIT:
        return ReschedulingDecision(reserved=False, check_after=remaining)
    return ReschedulingDecision(reserved=True, check_after=schedule.unschedulable, overdue=True)


# --- all subsets


def subset_conditions(
    view: UnitedView, subsets: Mapping[str, Subset], present: Conditions, expected: str, now: datetime
) -> Mapping[str, SubsetCondition]:
    """Return the conditions of all subsets in the status and in the spec."""
    conditions_by_subset = _known_conditions(view, now)
    updated = conditions_of.find(present, CONDITION_UPDATED)
    assert updated is not None  # the caller has set it
    rollout = Rollout(expected=expected, since=_last_transition_time(updated))
    return {
        name: _check_subset(view, subsets.get(name), rollout, conditions, now)
        for name, conditions in conditions_by_subset.items()
    }


def _known_conditions(view: UnitedView, now: datetime) -> Mapping[str, Conditions]:
    """Return the conditions by subset, in the order of the status. Removed subsets remain in the status."""
    conditions_by_subset = {
        entry["name"]: entry.get("conditions") or () for entry in view.status.get("subsetStatuses") or ()
    }
    initial = _initial_conditions(now) if conditions_by_subset and view.schedule.reserves else ()
    return conditions_by_subset | {
        subset.name: initial for subset in view.subsets if subset.name not in conditions_by_subset
    }


def _initial_conditions(now: datetime) -> Conditions:
    message = "newly-created subsets in reservation strategy"
    return _set_schedulable((), "False", "created", message, now)


def _check_subset(
    view: UnitedView, subset: Subset | None, rollout: Rollout, conditions: Conditions, now: datetime
) -> SubsetCondition:
    schedule = view.schedule
    if subset is None or not schedule.is_adaptive:
        return SubsetCondition(conditions=conditions)
    if schedule.reserves:
        return check_reservation(subset, schedule, rollout, conditions, now)
    return check_schedulability(subset, schedule, conditions, now)


# --- the condition of a subset, and the wait of a pod


def _set_schedulable(
    conditions: Conditions, status: str, reason: str, message: str, now: datetime
) -> Conditions:
    """Set the condition Schedulable, unless its status and reason are the same."""
    old = conditions_of.find(conditions, CONDITION_SCHEDULABLE)
    if old is not None and (old["status"], old.get("reason")) == (status, reason):
        return conditions
    condition = {
        "type": CONDITION_SCHEDULABLE,
        "status": status,
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message,
    }
    return [*conditions_of.without(conditions, CONDITION_SCHEDULABLE), condition]


def _is_unschedulable(conditions: Conditions) -> bool:
    condition = conditions_of.find(conditions, CONDITION_SCHEDULABLE)
    return condition is not None and condition["status"] == "False"


def _time_left(condition: ReadOnlyTree, period: timedelta, now: datetime) -> timedelta:
    """Return the rest of a period that began when the condition last changed; negative when it is over."""
    return _last_transition_time(condition) + period - now


def _last_transition_time(condition: ReadOnlyTree) -> datetime:
    return parse_time(condition["lastTransitionTime"])


def time_to_find_node(pod: PodView, critical: timedelta, now: datetime) -> timedelta | None:
    """Return how long a pod may still be unschedulable, at most 0 if it is too long; None if it is not unschedulable."""
    scheduled = conditions_of.get(pod.object, CONDITION_POD_SCHEDULED)
    is_unschedulable_pod = (
        scheduled is not None
        and scheduled["status"] == "False"
        and scheduled.get("reason") == "Unschedulable"
    )
    created = meta.creation_timestamp(pod.object)
    if not is_unschedulable_pod or pod.deleting or pod.phase != PENDING or pod.node or created is None:
        return None
    return created + critical - now
