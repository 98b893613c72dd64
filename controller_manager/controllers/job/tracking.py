"""Count the pods of a Job that have ended, each exactly once, whatever crashes in between. Pure.

A pod that ended is first named in `uncountedTerminatedPods`, then it loses its finalizer, and then it is counted and its
name removed: a name without a finalizer is to be counted. Of a Job with indexes the succeeded indexes are written
instead, before the finalizers go.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import JOBS
from mockube.controller_manager.client.podview import SUCCEEDED, PodView
from mockube.controller_manager.control.actions import (
    Action,
    Outcome,
    Plan,
    RecordEvent,
    Remember,
    RemoveFinalizer,
    Update,
)
from mockube.controller_manager.controllers.job import index_ranges
from mockube.controller_manager.controllers.job.ending import (
    COMPLETE,
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    final_condition,
    is_deleting,
    is_success,
    with_condition,
)
from mockube.controller_manager.controllers.job.pods import finalizer_removal
from mockube.controller_manager.controllers.job.policies import pod_failure
from mockube.controller_manager.controllers.job.state import (
    JobState,
    index_of,
    indexes_of,
    is_indexed,
    is_tracked,
)

MAX_UNCOUNTED: Final = 500
"""So that no status grows beyond some 20 KB, and no Job keeps others waiting."""

Status = Mapping[str, Any]


class Progress(Struct, frozen=True, kw_only=True):
    """The progress of one reconciliation with the status of a Job."""

    state: JobState
    status: Status
    """The new status."""
    end: ReadOnlyTree | None
    """The condition by which the Job ends."""
    tracked: Collection[str]
    """The uids of pods that still have their finalizer."""
    is_full: bool = False
    """There are more pods to count."""
    events: tuple[RecordEvent, ...] = ()

    @property
    def body(self) -> ReadOnlyTree:
        return {**self.state.job, "status": self.status}


def track(progress: Progress, now: datetime) -> Plan:
    """Write the status if it differs, remove the finalizers of the pods named in it, and count them."""
    ended, status, is_full = _name_uncounted(progress)
    interim = None
    if progress.end is not None and progress.end["type"] in (FAILURE_TARGET, SUCCESS_CRITERIA_MET):
        interim = progress.end
        if not conditions.is_true({"status": status}, interim["type"]):
            status = {**status, "conditions": [*(status.get("conditions") or ()), interim]}
    end = progress.end if interim is None else final_condition(interim, now)
    progress = replace(progress, status=status, end=end, is_full=is_full)
    is_new = _has_changed(progress.state.status, status)
    written: tuple[Action, ...] = ()
    if is_new:
        update = Update(resource=JOBS, body=progress.body, subresource="status")
        written = (update, Remember(progress.state.failures))

    def then(outcome: Outcome) -> Plan | None:
        if outcome.error is not None:
            return None
        return _release(_refresh(progress, outcome), ended)

    return Plan(actions=(*progress.events, *written), then=then)


def _refresh(progress: Progress, outcome: Outcome) -> Progress:
    """With the Job as the server has it after the update."""
    answers = [write.answer for write in outcome.of(Update) if write.answer is not None]
    if not answers:
        return progress
    (job,) = answers
    return replace(progress, state=replace(progress.state, job=job))


def _release(progress: Progress, ended: Sequence[PodView]) -> Plan | None:
    actions = (finalizer_removal(ended),) if ended else ()
    return Plan(actions=actions, then=lambda outcome: _count(progress, outcome))


def _count(progress: Progress, outcome: Outcome) -> Plan | None:
    """Count the pods whose finalizer was removed; if none are left, finish the Job."""
    done = {write.key for write in outcome.of(RemoveFinalizer)}
    released = {pod.uid for pod in progress.state.pods if pod.key in done}
    status = drop_counted(progress.status, {uid for uid in progress.tracked if uid not in released})
    is_finished = outcome.error is None and _may_finish(progress, status)
    events: tuple[Action, ...] = ()
    if is_finished and progress.end is not None:
        status = _with_end(status, progress.end)
        events = _end_events(progress, status)
    if status == progress.status:
        return None
    body = {**progress.state.job, "status": status}
    return Plan(actions=(Update(resource=JOBS, body=body, subresource="status"), *events))


def drop_counted(status: Status, tracked: Collection[str]) -> Status:
    """Count the listed pods that have no finalizer any more, and remove them from the list."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    counted_status, remaining = dict(status), {}
    for field, names in uncounted.items():
        remaining[field] = [uid for uid in names if uid in tracked]
        if done := len(names) - len(remaining[field]):
            counted_status[field] = (status.get(field) or 0) + done
    return {
        **counted_status,
        "uncountedTerminatedPods": {field: names for field, names in remaining.items() if names},
    }


# --- naming


def _name_uncounted(progress: Progress) -> tuple[Sequence[PodView], Status, bool]:
    """Return the pods whose finalizers are to be removed, the status that names those to count, and whether it is
    full.
    """
    state = progress.state
    pods: Sequence[PodView] = state.pods
    if is_indexed(state.job):
        pods = sorted(pods, key=lambda pod: -1 if (index := index_of(pod)) is None else index)
    status = drop_counted(progress.status, progress.tracked)
    names = _Names(progress, status)
    ended = []
    for pod in pods:
        if not is_tracked(pod) or not _is_to_go(progress, pod):
            continue
        ended.append(pod)
        names.add(pod)
        if names.count >= MAX_UNCOUNTED:
            return ended, names.status(), True
    return ended, names.status(), False


def _is_to_go(progress: Progress, pod: PodView) -> bool:
    """Whether its finalizer may go; a failed pod whose index is retried still has its failure count copied."""
    state = progress.state
    if is_deleting(state) or progress.end is not None or pod.phase == SUCCEEDED:
        return True
    index = index_of(pod)
    return state.is_failed(pod) and (index is None or state.replaceable.get(index) is not pod)


class _Names:
    """What a status names, while pods are added to it."""

    def __init__(self, progress: Progress, status: Status) -> None:
        uncounted = status.get("uncountedTerminatedPods") or {}
        self._state = progress.state
        self._fails_rest = progress.end is not None and not is_success(progress.end)
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
        elif self._fails_rest or state.is_failed(pod):
            is_ours = not is_indexed(state.job) or state.has_index(pod)
            if is_ours and pod_failure(state.job, pod).counts:
                self._failed[pod.uid] = None

    def status(self) -> Status:
        named = {"succeeded": [*self._succeeded], "failed": [*self._failed]}
        uncounted = {field: uids for field, uids in named.items() if uids}
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


def _may_finish(progress: Progress, status: Status) -> bool:
    if progress.end is None or progress.is_full or status.get("terminating"):
        return False
    return not status.get("uncountedTerminatedPods")


def _with_end(status: Status, end: ReadOnlyTree) -> Status:
    completion = {"completionTime": end["lastTransitionTime"]} if end["type"] == COMPLETE else {}
    return {
        **status,
        **completion,
        "conditions": with_condition(status.get("conditions") or (), dict(end)),
    }


def _end_events(progress: Progress, status: Status) -> tuple[RecordEvent, ...]:
    end, job = progress.end or {}, progress.state.job
    if end["type"] != COMPLETE:
        return (RecordEvent(about=job, type="Warning", reason=end["reason"], message=end["message"]),)
    done = RecordEvent(about=job, type="Normal", reason="Completed", message="Job completed")
    completions = progress.state.spec.get("completions")
    if completions is None or (status.get("succeeded") or 0) <= completions:
        return (done,)
    message = "Too many succeeded pods running after completion count reached"
    return (RecordEvent(about=job, type="Warning", reason="TooManySucceededPods", message=message), done)


_ZEROS: Final = ("active", "succeeded", "failed", "completedIndexes")
"""What is absent where it is nothing."""


def _has_changed(old: Status, new: Status) -> bool:
    return _clean(old) != _clean(new)


def _clean(status: Status) -> Status:
    return {
        field: value
        for field, value in status.items()
        if value or field not in (*_ZEROS, "uncountedTerminatedPods", "conditions")
    }
