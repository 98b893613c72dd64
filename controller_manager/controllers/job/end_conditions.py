"""The end of a Job, and its conditions.

The interim condition, FailureTarget or SuccessCriteriaMet, is set first. The final condition, Failed or Complete,
follows when all pods are counted and none is terminating.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.apimachinery import conditions, meta, timestamps
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PENDING, RUNNING, PodView

from . import index_ranges
from .policies import pod_failure, success_message
from .state import JobState, is_indexed, is_suspended

FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"

Condition = dict[str, Any]


def condition(type_: str, reason: str, message: str, now: datetime, *, status: str = "True") -> Condition:
    time = timestamps.format_time(now)
    return {
        "type": type_,
        "status": status,
        "lastProbeTime": time,
        "lastTransitionTime": time,
        "reason": reason,
        "message": message,
    }


def with_condition(present: Sequence[ReadOnlyTree], new: Condition) -> Sequence[ReadOnlyTree]:
    """Add or replace a condition; an absent one is not added as False.

    Returns the same list if nothing differs.
    """
    old = next((condition for condition in present if condition["type"] == new["type"]), None)
    if old is None:
        return present if new["status"] == "False" else [*present, new]
    if all(old.get(field, "") == new[field] for field in ("status", "reason", "message")):
        return present
    return [new if condition is old else condition for condition in present]


def final_condition(interim: ReadOnlyTree, now: datetime) -> Condition:
    """Return the final condition that follows an interim one."""
    final = {FAILURE_TARGET: FAILED, SUCCESS_CRITERIA_MET: COMPLETE}[interim["type"]]
    return condition(final, interim.get("reason", ""), interim.get("message", ""), now)


def completion_condition(now: datetime) -> Condition:
    message = "Reached expected number of succeeded pods"
    return condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message, now)


def is_success(end: ReadOnlyTree | None) -> bool:
    return end is not None and end["type"] in (SUCCESS_CRITERIA_MET, COMPLETE)


def end_of(state: JobState, now: datetime) -> ReadOnlyTree | None:
    """Return the condition that ends the Job; None while it continues."""
    return _end_condition_in_status(state.job, now) or _failure(state, now) or _success(state, now)


def _end_condition_in_status(job: ReadOnlyTree, now: datetime) -> ReadOnlyTree | None:
    """Return the condition that an earlier reconciliation set."""
    if conditions.is_true(job, SUCCESS_CRITERIA_MET):
        return conditions.get(job, SUCCESS_CRITERIA_MET)
    target = conditions.get(job, FAILURE_TARGET)
    return final_condition(target, now) if target is not None and target["status"] == "True" else None


def _failure(state: JobState, now: datetime) -> Condition | None:
    reason, message = _failure_reason(state, now)
    return condition(FAILURE_TARGET, reason, message, now) if reason else None


def _failure_reason(state: JobState, now: datetime) -> tuple[str, str]:
    job, spec = state.job, state.spec
    failed = (pod_failure(job, pod).message for pod in state.pods if state.is_failed(pod))
    if message := next(filter(None, failed), ""):
        return "PodFailurePolicy", message
    if state.failed > spec["backoffLimit"] or _exceeds_restart_limit(job, state.pods):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    remaining_time = time_left(job, now)
    if remaining_time is not None and remaining_time <= timedelta():
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    if state.failed_indexes is None:
        return "", ""
    failures, maximum = index_ranges.total(state.failed_indexes), spec.get("maxFailedIndexes")
    if maximum is not None and failures > maximum:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if failures and failures + index_ranges.total(state.succeeded_indexes) >= spec["completions"]:
        return "FailedIndexes", "Job has failed indexes"
    return "", ""


def _success(state: JobState, now: datetime) -> Condition | None:
    message = success_message(state.job, state.succeeded_indexes) if is_indexed(state.job) else ""
    return condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", message, now) if message else None


def time_left(job: ReadOnlyTree, now: datetime) -> timedelta | None:
    """Return the time until the deadline; None without a deadline or while the Job is suspended."""
    seconds, started = job["spec"].get("activeDeadlineSeconds"), (job.get("status") or {}).get("startTime")
    if seconds is None or is_suspended(job):
        return None
    return (
        timestamps.after(timestamps.parse_time(started) if started else now, timestamps.span_of(seconds))
        - now
    )


def _exceeds_restart_limit(job: ReadOnlyTree, pods: Sequence[PodView]) -> bool:
    """Return whether the restarts of containers in all pods reach the backoff limit."""
    spec = job["spec"]
    if spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    running = (pod.object.get("status") or {} for pod in pods if pod.phase in (RUNNING, PENDING))
    restarts = sum(
        container.get("restartCount") or 0
        for status in running
        for field in ("initContainerStatuses", "containerStatuses")
        for container in status.get(field) or ()
    )
    limit: int = spec["backoffLimit"]
    return restarts >= max(limit, 1)


def has_enough_successes(state: JobState, active: int) -> bool:
    """Return whether enough pods have succeeded, `completions` or one, and none is active."""
    completions: int | None = state.spec.get("completions")
    needed = 1 if completions is None else completions
    return active == 0 and state.succeeded >= needed


def is_deleting(state: JobState) -> bool:
    return meta.is_deleting(state.job)
