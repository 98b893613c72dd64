"""The metrics of the Job controller, with kube-controller-manager's names."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, Metric

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.control.actions import Create, Delete, PlanResult, Update
from mockube.controller_manager.control.controller import OutcomeMetrics
from mockube.controller_manager.metrics.durations import LabelledDurations

from . import index_ranges
from .end_conditions import COMPLETE, FAILED
from .state import is_finished, is_indexed, is_managed_elsewhere

BUCKETS: Final = tuple(0.004 * 2**power for power in range(15))
"""The buckets of durations in seconds; they are upstream's."""
_PREFIX: Final = "job_controller_"
_RESULTS: Final = {COMPLETE: "succeeded", FAILED: "failed"}

_COUNTERS: Final = {
    "jobs_finished": ("completion_mode", "result", "reason"),
    "job_pods_finished": ("completion_mode", "result"),
    "job_finished_indexes": ("status", "backoffLimit"),
    "job_pods_creation": ("reason", "status"),
}
"""The labels of each counter, by its name without the prefix."""


class JobMonitor(OutcomeMetrics):
    def __init__(self) -> None:
        labels = ("completion_mode", "result", "action")
        names = f"{_PREFIX}job_syncs", f"{_PREFIX}job_sync_duration_seconds"
        self._syncs = LabelledDurations(*names, labels, BUCKETS)
        self._counts: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in _COUNTERS}

    def observe(self, primary: Any, outcome: PlanResult, seconds: float, now: datetime) -> None:  # noqa: ARG002
        if primary is None or is_finished(primary) or is_managed_elsewhere(primary):
            return
        mode, result = _mode(primary), "success" if outcome.error is None else "error"
        self._syncs.observe((mode, result, _action(outcome)), seconds)
        self._count("job_pods_creation", (_creation_reason(primary), "succeeded"), len(outcome.of(Create)))
        for write in outcome.of(Update):
            if write.response is not None:
                self._count_changes(primary, write.response)
                primary = write.response

    def collect(self) -> Iterable[Metric]:
        yield from self._syncs.collect()
        for name, labels in _COUNTERS.items():
            family = CounterMetricFamily(f"{_PREFIX}{name}", "How many.", labels=labels)
            for values, count in self._counts[name].items():
                family.add_metric(values, count)
            yield family

    def _count(self, name: str, labels: tuple[str, ...], count: int) -> None:
        if count > 0:
            self._counts[name][labels] += count

    def _count_changes(self, old: ReadOnlyTree, new: ReadOnlyTree) -> None:
        """Count the pods, indexes and Jobs that a write of the status marks as finished."""
        mode = _mode(new)
        for type_, result in _RESULTS.items():
            if conditions.is_true(new, type_) and not conditions.is_true(old, type_):
                reason = (conditions.get(new, type_) or {}).get("reason") or ""
                self._count("jobs_finished", (mode, result, reason), 1)
        succeeded = _number(new, "succeeded") - _number(old, "succeeded")
        if is_indexed(new):
            succeeded = _indexes(new, "completedIndexes") - _indexes(old, "completedIndexes")
            scope = "global" if new["spec"].get("backoffLimitPerIndex") is None else "perIndex"
            failed = _indexes(new, "failedIndexes") - _indexes(old, "failedIndexes")
            self._count("job_finished_indexes", ("succeeded", scope), succeeded)
            self._count("job_finished_indexes", ("failed", scope), failed)
        self._count("job_pods_finished", (mode, "succeeded"), succeeded)
        failures = _number(new, "failed") - _number(old, "failed")
        self._count("job_pods_finished", (mode, "failed"), failures)


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
