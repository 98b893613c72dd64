"""Counting of a Job's ended pods: each pod is counted exactly once, even after a crash between the steps.

An ended pod is first added to `uncountedTerminatedPods`. Then its finalizer is removed; then it is counted, and removed
from the list: a listed pod without the finalizer has to be counted. For an Indexed Job the succeeded indexes are written
instead, before the finalizers are removed.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import JOBS
from mockube.client.podview import SUCCEEDED, PodView
from mockube.controller_manager.control.actions import (
    Action,
    Plan,
    PlanResult,
    RecordEvent,
    Remember,
    RemoveFinalizer,
    Update,
)

from . import end_conditions, index_ranges
from .pods import finalizer_removal
from .policies import pod_failure
from .state import JobState, index_of, indexes_of, is_indexed, is_tracked

MAX_UNCOUNTED: Final = 500
"""The maximum number of listed pods: it limits the status to about 20 KB, and the time that one Job takes."""

Status = Mapping[str, Any]


class JobProgress(Struct, frozen=True, kw_only=True):
    """The state of one reconciliation's counting, and the status that it writes."""

    state: JobState
    status: Status
    """The new status."""
    end_condition: ReadOnlyTree | None
    """The condition that ends the Job; None while it continues."""
    tracked_uids: Collection[str]
    """The uids of the pods that have their finalizer."""
    is_full: bool = False
    """Whether there are more pods to count."""
    events: tuple[RecordEvent, ...] = ()

    @property
    def body(self) -> ReadOnlyTree:
        return {**self.state.job, "status": self.status}


def track(progress: JobProgress, now: datetime) -> Plan:
    """Return the plan that writes the status, then removes the finalizers of the pods listed in it, then counts them."""
    ended_pods, status, is_full = _list_uncounted(progress)
    interim = None
    if progress.end_condition is not None and progress.end_condition["type"] in (
        end_conditions.FAILURE_TARGET,
        end_conditions.SUCCESS_CRITERIA_MET,
    ):
        interim = progress.end_condition
        if not conditions.is_true({"status": status}, interim["type"]):
            status = {**status, "conditions": [*(status.get("conditions") or ()), interim]}
    end_condition = (
        progress.end_condition if interim is None else end_conditions.final_condition(interim, now)
    )
    progress = replace(progress, status=status, end_condition=end_condition, is_full=is_full)
    is_changed = _without_empty_fields(progress.state.status) != _without_empty_fields(status)
    writes: tuple[Action, ...] = ()
    if is_changed:
        update = Update(resource=JOBS, body=progress.body, subresource="status")
        writes = (update, Remember(progress.state.failures))

    def then(outcome: PlanResult) -> Plan | None:
        if outcome.error is not None:
            return None
        return _remove_finalizers(_with_updated_job(progress, outcome), ended_pods)

    return Plan(actions=(*progress.events, *writes), then=then)


def _with_updated_job(progress: JobProgress, outcome: PlanResult) -> JobProgress:
    """Return the progress with the Job that the update returned."""
    answers = [write.response for write in outcome.of(Update) if write.response is not None]
    if not answers:
        return progress
    (job,) = answers
    return replace(progress, state=replace(progress.state, job=job))


def _remove_finalizers(progress: JobProgress, ended_pods: Sequence[PodView]) -> Plan | None:
    actions = (finalizer_removal(ended_pods),) if ended_pods else ()
    return Plan(actions=actions, then=lambda outcome: _count(progress, outcome))


def _count(progress: JobProgress, outcome: PlanResult) -> Plan | None:
    """Return the plan that counts the pods whose finalizer was removed, and ends the Job after the last one."""
    released_keys = {write.key for write in outcome.of(RemoveFinalizer)}
    released_uids = {pod.uid for pod in progress.state.pods if pod.key in released_keys}
    status = count_released_pods(
        progress.status, {uid for uid in progress.tracked_uids if uid not in released_uids}
    )
    is_finished = outcome.error is None and _can_finish(progress, status)
    events: tuple[Action, ...] = ()
    if is_finished and progress.end_condition is not None:
        status = _with_end_condition(status, progress.end_condition)
        events = _end_events(progress, status)
    if status == progress.status:
        return None
    body = {**progress.state.job, "status": status}
    return Plan(actions=(Update(resource=JOBS, body=body, subresource="status"), *events))


def count_released_pods(status: Status, tracked_uids: Collection[str]) -> Status:
    """Count the listed pods that have no finalizer, and remove them from the list."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    counted_status, remaining = dict(status), {}
    for field, names in uncounted.items():
        remaining[field] = [uid for uid in names if uid in tracked_uids]
        if released_count := len(names) - len(remaining[field]):
            counted_status[field] = (status.get(field) or 0) + released_count
    return {
        **counted_status,
        "uncountedTerminatedPods": {field: names for field, names in remaining.items() if names},
    }


# --- listing


def _list_uncounted(progress: JobProgress) -> tuple[Sequence[PodView], Status, bool]:
    """Return the pods whose finalizers to remove, the status that lists those to count, and whether its list is full."""
    state = progress.state
    pods: Sequence[PodView] = state.pods
    if is_indexed(state.job):
        pods = sorted(pods, key=lambda pod: -1 if (index := index_of(pod)) is None else index)
    status = count_released_pods(progress.status, progress.tracked_uids)
    uncounted = _UncountedList(progress, status)
    ended_pods = []
    for pod in pods:
        if not is_tracked(pod) or not _is_finalizer_removable(progress, pod):
            continue
        ended_pods.append(pod)
        uncounted.add(pod)
        if uncounted.count >= MAX_UNCOUNTED:
            return ended_pods, uncounted.status(), True
    return ended_pods, uncounted.status(), False


def _is_finalizer_removable(progress: JobProgress, pod: PodView) -> bool:
    """Return whether the pod's finalizer may be removed.

    A failed pod whose index is retried keeps it: its failure count is copied to its successor.
    """
    state = progress.state
    if end_conditions.is_deleting(state) or progress.end_condition is not None or pod.phase == SUCCEEDED:
        return True
    index = index_of(pod)
    return state.is_failed(pod) and (index is None or state.replaceable.get(index) is not pod)


class _UncountedList:
    """The pods and indexes that a status lists, while pods are added."""

    def __init__(self, progress: JobProgress, status: Status) -> None:
        uncounted = status.get("uncountedTerminatedPods") or {}
        self._state = progress.state
        self._fails_all_others = progress.end_condition is not None and not end_conditions.is_success(
            progress.end_condition
        )
        self._status = status
        self._counted = progress.state.counted_indexes
        self._succeeded = dict.fromkeys(uncounted.get("succeeded") or ())
        self._failed = dict.fromkeys(uncounted.get("failed") or ())
        self._indexes: set[int] = set()

    @property
    def count(self) -> int:
        return len(self._indexes) + len(self._succeeded) + len(self._failed)

    def add(self, pod: PodView) -> None:
        state = self._state
        if pod.phase == SUCCEEDED and pod.uid not in self._failed:
            if not is_indexed(state.job):
                self._succeeded[pod.uid] = None
            elif state.has_index(pod):
                new = indexes_of((pod,))
                self._indexes |= {index for index in new if not index_ranges.contains(self._counted, index)}
        elif self._fails_all_others or state.is_failed(pod):
            counts_for_job = not is_indexed(state.job) or state.has_index(pod)
            if counts_for_job and pod_failure(state.job, pod).counts:
                self._failed[pod.uid] = None

    def status(self) -> Status:
        uids_by_result = {"succeeded": [*self._succeeded], "failed": [*self._failed]}
        uncounted = {field: uids for field, uids in uids_by_result.items() if uids}
        new_status = {**self._status, "uncountedTerminatedPods": uncounted}
        state = self._state
        if not is_indexed(state.job):
            return new_status
        new_status["succeeded"] = index_ranges.total(state.succeeded_indexes)
        new_status["completedIndexes"] = index_ranges.text_of(state.succeeded_indexes)
        if state.failed_indexes is not None:
            new_status["failedIndexes"] = index_ranges.text_of(state.failed_indexes)
        return new_status


# --- finishing


def _can_finish(progress: JobProgress, status: Status) -> bool:
    if progress.end_condition is None or progress.is_full or status.get("terminating"):
        return False
    return not status.get("uncountedTerminatedPods")


def _with_end_condition(status: Status, end_condition: ReadOnlyTree) -> Status:
    completion = (
        {"completionTime": end_condition["lastTransitionTime"]}
        if end_condition["type"] == end_conditions.COMPLETE
        else {}
    )
    return {
        **status,
        **completion,
        "conditions": end_conditions.with_condition(status.get("conditions") or (), dict(end_condition)),
    }


def _end_events(progress: JobProgress, status: Status) -> tuple[RecordEvent, ...]:
    end_condition, job = progress.end_condition or {}, progress.state.job
    if end_condition["type"] != end_conditions.COMPLETE:
        return (
            RecordEvent(
                about=job, type="Warning", reason=end_condition["reason"], message=end_condition["message"]
            ),
        )
    completed_event = RecordEvent(about=job, type="Normal", reason="Completed", message="Job completed")
    completions = progress.state.spec.get("completions")
    if completions is None or (status.get("succeeded") or 0) <= completions:
        return (completed_event,)
    message = "Too many succeeded pods running after completion count reached"
    return (
        RecordEvent(about=job, type="Warning", reason="TooManySucceededPods", message=message),
        completed_event,
    )


_OMITTED_IF_EMPTY: Final = ("active", "succeeded", "failed", "completedIndexes")
"""The fields that are absent if they are 0 or empty."""


def _without_empty_fields(status: Status) -> Status:
    return {
        field: value
        for field, value in status.items()
        if value or field not in (*_OMITTED_IF_EMPTY, "uncountedTerminatedPods", "conditions")
    }
