"""Keep pods that find no node, or whose update takes too long, reserved: others stand for them until they run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from controller_manager.controllers.uniteddeployment import conditions as conditions_of
from controller_manager.controllers.uniteddeployment.conditions import FALSE, TRUE, Conditions
from controller_manager.controllers.uniteddeployment.names import LABEL_RESERVED_POD
from controller_manager.controllers.uniteddeployment.schedulable import soonest
from controller_manager.controllers.uniteddeployment.standing import Standing, time_to_find_node
from controller_manager.controllers.uniteddeployment.subset import Subset, revision_of
from controller_manager.controllers.uniteddeployment.views import Schedule
from controller_manager.workloads.podview import RUNNING, PodView

_NOTHING: Final = timedelta()
_RESCHEDULE: Final = "reschedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """What pods are to be, and since when."""

    expected: str
    """The revision."""
    since: datetime


class Verdict(NamedTuple):
    reserved: bool
    check_after: timedelta | None = None
    overdue: bool = False


def look(
    subset: Subset, schedule: Schedule, rollout: Rollout, conditions: Conditions, now: datetime
) -> Standing:
    marked = conditions_of.is_unschedulable(conditions)
    verdicts = [_of(pod, schedule, rollout, now, marked=marked) for pod in subset.pods]
    reserved = sum(verdict.reserved for verdict in verdicts)
    status, message = (FALSE, "reserved pods found") if reserved else (TRUE, "no reserved pods")
    return Standing(
        conditions=conditions_of.schedulable(conditions, status, _RESCHEDULE, message, now),
        unschedulable=reserved > 0,
        marked=marked,
        reserved=reserved,
        overdue=sum(verdict.overdue for verdict in verdicts),
        marks=_marks(subset.pods, verdicts),
        check_after=soonest(verdict.check_after for verdict in verdicts),
    )


def grown(standing: Standing, now: datetime) -> Standing:
    """Of a subset that has just recovered and gets more pods: the new ones begin as reserved, until they run."""
    message = "subset just recovered scaled up"
    return replace(
        standing,
        conditions=conditions_of.schedulable(standing.conditions, FALSE, _RESCHEDULE, message, now),
    )


def _marks(pods: Sequence[PodView], verdicts: Sequence[Verdict]) -> tuple[tuple[PodView, bool], ...]:
    judged = zip(pods, verdicts, strict=True)
    return tuple(
        (pod, reserved)
        for pod, (reserved, _, _) in judged
        if pod.labels.get(LABEL_RESERVED_POD) != ("true" if reserved else "false")
    )


def _of(pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime, *, marked: bool) -> Verdict:
    if marked and LABEL_RESERVED_POD not in pod.labels:
        return Verdict(reserved=True, check_after=schedule.unschedulable)
    return judge(pod, schedule, rollout, now)


def judge(pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime) -> Verdict:
    """Whether a pod is reserved, and when that may have changed though nothing happens."""
    if pod.labels.get(LABEL_RESERVED_POD) == "true":
        return _of_reserved(pod, schedule, rollout, now)
    if revision_of(pod) == rollout.expected:
        return _of_updated(pod, schedule, now)
    return _of_outdated(pod, schedule, rollout, now)


def _of_reserved(pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime) -> Verdict:
    runs = pod.phase == RUNNING and revision_of(pod) == rollout.expected
    if not runs or pod.ready_since is None:
        return Verdict(reserved=True, check_after=schedule.unschedulable)
    remaining = pod.ready_since + schedule.unschedulable - now
    return Verdict(reserved=True, check_after=remaining) if remaining > _NOTHING else Verdict(reserved=False)


def _of_updated(pod: PodView, schedule: Schedule, now: datetime) -> Verdict:
    wait = time_to_find_node(pod, schedule.critical, now)
    if wait is not None and wait <= _NOTHING:
        return Verdict(reserved=True, check_after=schedule.unschedulable)
    return Verdict(reserved=False, check_after=wait)


def _of_outdated(pod: PodView, schedule: Schedule, rollout: Rollout, now: datetime) -> Verdict:
    if pod.deleting:
        return Verdict(reserved=False)
    remaining = rollout.since + schedule.critical - now
    if remaining > _NOTHING:
        return Verdict(reserved=False, check_after=remaining)
    return Verdict(reserved=True, check_after=schedule.unschedulable, overdue=True)
