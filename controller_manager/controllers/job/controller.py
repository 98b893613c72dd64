"""The Job controller: its watches, and its reconcile function.

One reconciliation creates or deletes pods, writes ended pods into the status, removes their finalizers, and counts
them: `tracking` has the reason for this order. Each step is a plan, which depends on the outcome of the previous one.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import FINALIZER_JOB_TRACKING
from mockube.client.cache.store import Caches
from mockube.client.kinds import JOBS, PODS
from mockube.client.queue.workqueue import RetryBackoff
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Create,
    Delete,
    Plan,
    PlanResult,
    RecordEvent,
    Remember,
)
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.workloads import ownership
from mockube.controller_manager.workloads.pod_control import pod_deletion
from mockube.controller_manager.workloads.watches import watches_of

from . import end_conditions
from .backoff import Failures, shortest_span
from .monitor import JobMonitor
from .pods import PodChange, pod_change
from .state import JobState, is_finished, is_managed_elsewhere, is_suspended, is_tracked, state_of
from .tracking import JobProgress, track

_FORGET_PLAN: Final = Plan(actions=(Remember(None),))

BATCH_PERIOD: Final = timedelta(seconds=1)
"""The delay of a reconciliation after a change of a pod or of the status. A change of the spec is reconciled at once."""


def reconcile(caches: Caches, key: Key, now: datetime, memory: Failures | None) -> Plan:
    job = caches.of(JOBS).get(*key)
    if job is None or is_finished(job):
        return _FORGET_PLAN
    if is_managed_elsewhere(job):
        return EMPTY_PLAN
    try:
        claims = ownership.owned_objects(caches, PODS, job, ownership.selector_of(job))
    except SelectorError:
        return EMPTY_PLAN
    # Adoption and release are a reconciliation of their own: pods are counted after the caches show them.
    if first := ownership.adoption_and_release_actions(
        claims, PODS, job, JOBS, finalizers=(FINALIZER_JOB_TRACKING,)
    ):
        return Plan(actions=first)
    return _plan(state_of(job, claims.owned, memory or Failures()), now)


def _plan(state: JobState, now: datetime) -> Plan:
    end_condition = end_conditions.end_of(state, now)
    if end_condition is not None:
        actions = (pod_deletion(state.job, state.active),) if state.active else ()
        return Plan(actions=actions, then=lambda outcome: _plan_after_end(state, end_condition, outcome, now))
    change = PodChange() if meta.is_deleting(state.job) else pod_change(state, now)
    again = None if change.requeue_after is None else max(change.requeue_after, BATCH_PERIOD)
    waits = [span for span in (again, end_conditions.time_left(state.job, now)) if span is not None]
    return Plan(
        actions=change.actions,
        then=lambda outcome: _plan_after_pod_change(state, outcome, now),
        requeue_after=shortest_span(waits),
    )


def _plan_after_end(state: JobState, end_condition: ReadOnlyTree, outcome: PlanResult, now: datetime) -> Plan:
    """Return the plan that tracks pods; the Job ends when all active pods are deleted."""
    remaining_state = _without_deleted(state, outcome)
    are_all_deleted = len(state.active) == len(outcome.of(Delete))
    return track(
        _progress(
            remaining_state,
            _status(remaining_state, len(remaining_state.active), now),
            end_condition if are_all_deleted else None,
        ),
        now,
    )


def _plan_after_pod_change(state: JobState, outcome: PlanResult, now: datetime) -> Plan:
    remaining_state = _without_deleted(state, outcome)
    active = len(remaining_state.active) + len(outcome.of(Create))
    status = _status(remaining_state, active, now)
    if end_conditions.has_enough_successes(state, active):
        return track(_progress(remaining_state, status, end_conditions.completion_condition(now)), now)
    if meta.is_deleting(state.job):
        return track(_progress(remaining_state, status, None), now)
    status, events = _with_suspension(state, status, now)
    return track(replace(_progress(remaining_state, status, None), events=events), now)


def _without_deleted(state: JobState, outcome: PlanResult) -> JobState:
    deleted = {write.key for write in outcome.of(Delete)}
    active = tuple(pod for pod in state.active if pod.key not in deleted)
    return replace(
        state,
        active=active,
        terminating=state.terminating + len(state.active) - len(active),
        ready=sum(pod.is_ready for pod in active),
    )


def _status(state: JobState, active: int, now: datetime) -> dict[str, Any]:
    status = {**state.status, "active": active, "ready": state.ready, "terminating": state.terminating}
    if not status.get("startTime") and not is_suspended(state.job):
        status["startTime"] = format_time(now)
    return status


def _with_suspension(
    state: JobState, status: dict[str, Any], now: datetime
) -> tuple[dict[str, Any], tuple[RecordEvent, ...]]:
    """Set the condition Suspended. The start time is the time of the last resumption."""
    word = "Suspended" if is_suspended(state.job) else "Resumed"
    desired = end_conditions.condition(
        end_conditions.SUSPENDED,
        f"Job{word}",
        f"Job {word.lower()}",
        now,
        status="True" if is_suspended(state.job) else "False",
    )
    old_conditions = status.get("conditions") or ()
    new_conditions = end_conditions.with_condition(old_conditions, desired)
    if new_conditions is old_conditions:
        return status, ()
    status = {**status, "conditions": new_conditions, "startTime": format_time(now)}
    if is_suspended(state.job):
        del status["startTime"]
    return status, (RecordEvent(about=state.job, type="Normal", reason=word, message=desired["message"]),)


def _progress(state: JobState, status: dict[str, Any], end_condition: ReadOnlyTree | None) -> JobProgress:
    return JobProgress(
        state=state,
        status=status,
        end_condition=end_condition,
        tracked_uids={pod.uid for pod in state.pods if is_tracked(pod)},
    )


JOB: Final = Controller(
    name="job-controller",
    queue="job",
    service_account="job-controller",
    watches=(
        *watches_of(JOBS, delay=BATCH_PERIOD),
        Watch(
            resource=PODS,
            keys=ownership.keys_of_owners(PODS, JOBS, ownership.selector_of),
            delay=BATCH_PERIOD,
        ),
    ),
    reconcile=reconcile,
    has_memory=True,
    events_can_wait=True,
    outcome_metrics=JobMonitor,
    retries=RetryBackoff(base=1.0, max_seconds=60.0),
    workers=5,
    indexes={PODS: {ownership.BY_OWNER: ownership.owner_of_pod}},
)
