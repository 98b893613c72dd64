"""The metrics of the Job controller, with kube-controller-manager's names."""

from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.metrics import Family, MetricsRegistry
from mockube.controller_manager import metric_families as families
from mockube.controller_manager.control.actions import Create, Delete, PlanResult, Update
from mockube.controller_manager.control.controller import OutcomeMetrics

from . import index_ranges
from .end_conditions import COMPLETE, FAILED
from .state import is_finished, is_indexed, is_managed_elsewhere

_RESULTS: Final = {COMPLETE: "succeeded", FAILED: "failed"}


class JobMonitor(OutcomeMetrics):
    def __init__(self, metrics: MetricsRegistry) -> None:
        self._metrics = metrics
        self._syncs = metrics.timed_operations(families.JOB_SYNCS, families.JOB_SYNC_DURATION)

    def observe(self, primary: Any, outcome: PlanResult, seconds: float, now: datetime) -> None:  # noqa: ARG002
        if primary is None or is_finished(primary) or is_managed_elsewhere(primary):
            return
        mode, result = _mode(primary), "success" if outcome.error is None else "error"
        self._syncs.observe(seconds, mode, result, _action(outcome))
        self._count(
            families.JOB_PODS_CREATION, (_creation_reason(primary), "succeeded"), len(outcome.of(Create))
        )
        for write in outcome.of(Update):
            if write.response is not None:
                self._count_changes(primary, write.response)
                primary = write.response

    def _count(self, family: Family, labels: tuple[str, ...], count: int) -> None:
        if count > 0:
            self._metrics.numbers(family).add(count, *labels)

    def _count_changes(self, old: ReadOnlyTree, new: ReadOnlyTree) -> None:
        """Count the pods, indexes and Jobs that a write of the status marks as finished."""
        mode = _mode(new)
        for type_, result in _RESULTS.items():
            if conditions.is_true(new, type_) and not conditions.is_true(old, type_):
                reason = (conditions.get(new, type_) or {}).get("reason") or ""
                self._count(families.JOBS_FINISHED, (mode, result, reason), 1)
        succeeded = _number(new, "succeeded") - _number(old, "succeeded")
        if is_indexed(new):
            succeeded = _indexes(new, "completedIndexes") - _indexes(old, "completedIndexes")
            scope = "global" if new["spec"].get("backoffLimitPerIndex") is None else "perIndex"
            failed = _indexes(new, "failedIndexes") - _indexes(old, "failedIndexes")
            self._count(families.JOB_FINISHED_INDEXES, ("succeeded", scope), succeeded)
            self._count(families.JOB_FINISHED_INDEXES, ("failed", scope), failed)
        self._count(families.JOB_PODS_FINISHED, (mode, "succeeded"), succeeded)
        failures = _number(new, "failed") - _number(old, "failed")
        self._count(families.JOB_PODS_FINISHED, (mode, "failed"), failures)


def _mode(job: ReadOnlyTree) -> str:
    return job["spec"].get("completionMode") or "NonIndexed"


def _action(outcome: PlanResult) -> str:
    if outcome.of(Delete):
        return "pods_deleted"
    return "pods_created" if outcome.of(Create) else "tracking"


def _creation_reason(job: ReadOnlyTree) -> str:
    failed, terminating = _number(job, "failed"), _number(job, "terminating")
    if job["spec"].get("podReplacementPolicy") == "Failed" and failed:
        return "recreate_failed"
    return "recreate_terminating_or_failed" if failed or terminating else "new"


def _number(job: ReadOnlyTree, field: str) -> int:
    return (job.get("status") or {}).get(field) or 0


def _indexes(job: ReadOnlyTree, field: str) -> int:
    text = (job.get("status") or {}).get(field) or ""
    return index_ranges.total(index_ranges.parse(text, job["spec"].get("completions") or 0))
