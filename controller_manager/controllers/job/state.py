"""The state of a Job: its pods, and those that have ended and are not counted yet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_JOB_COMPLETION_INDEX, FINALIZER_JOB_TRACKING
from mockube.client.podview import FAILED, SUCCEEDED, PodView

from . import index_ranges
from .backoff import Failures, finish_time
from .index_ranges import Intervals
from .policies import FAIL_INDEX, pod_failure

FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
MANAGER: Final = "kubernetes.io/job-controller"
_MAX_FAILURES: Final = 2**31 - 1

# --- fields of a Job


def is_finished(job: ReadOnlyTree) -> bool:
    return conditions.is_true(job, "Complete") or conditions.is_true(job, "Failed")


def is_managed_elsewhere(job: ReadOnlyTree) -> bool:
    return str(job["spec"].get("managedBy") or MANAGER) != MANAGER


def is_suspended(job: ReadOnlyTree) -> bool:
    return bool(job["spec"].get("suspend"))


def is_indexed(job: ReadOnlyTree) -> bool:
    return str(job["spec"].get("completionMode")) == "Indexed"


def has_index_backoff_limit(job: ReadOnlyTree) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def replaces_failed_only(job: ReadOnlyTree) -> bool:
    """Return whether a pod is replaced only after it has failed, and not as soon as it is being deleted."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


# --- fields of a pod


def is_tracked(pod: PodView) -> bool:
    """Return whether the pod has the tracking finalizer: it is not counted yet."""
    return FINALIZER_JOB_TRACKING in meta.finalizers(pod.object)


def index_of(pod: PodView) -> int | None:
    """Return the completion index of a pod; None if it has no valid one."""
    text = meta.annotations(pod.object).get(ANNOTATION_JOB_COMPLETION_INDEX)
    index = None if text is None else int_or_none(text)
    return None if index is None or index < 0 else index


def indexes_of(pods: Iterable[PodView]) -> set[int]:
    return {index for pod in pods if (index := index_of(pod)) is not None}


def failure_count(pod: PodView, annotation: str = FAILURE_COUNT) -> int:
    """Return the number of earlier failures of the pod's index."""
    count = int_or_none(meta.annotations(pod.object).get(annotation, "0")) or 0
    return count if 0 <= count <= _MAX_FAILURES else 0


def all_failures(pod: PodView) -> int:
    return failure_count(pod) + failure_count(pod, IGNORED_FAILURE_COUNT)


# --- the state of one reconciliation


class JobState(Struct, frozen=True, kw_only=True):
    job: ReadOnlyTree
    pods: tuple[PodView, ...]
    active: tuple[PodView, ...]
    terminating: int
    ready: int
    succeeded: int
    failed: int
    counted_indexes: Intervals
    """The succeeded indexes in the status."""
    succeeded_indexes: Intervals
    failed_indexes: Intervals | None
    """None for a Job without a backoff limit for each index."""
    replaceable: Mapping[int, PodView]
    """The last failed pod of each index that is retried: the failure count is copied to its successor."""
    failures: Failures

    @property
    def spec(self) -> ReadOnlyTree:
        spec: ReadOnlyTree = self.job["spec"]
        return spec

    @property
    def status(self) -> ReadOnlyTree:
        return self.job.get("status") or {}

    def is_failed(self, pod: PodView) -> bool:
        return is_failed(self.job, pod)

    def has_index(self, pod: PodView) -> bool:
        """Return whether the pod's index is below `completions`."""
        index = index_of(pod)
        return index is not None and index < self.spec["completions"]


def is_failed(job: ReadOnlyTree, pod: PodView) -> bool:
    """Return whether a pod counts as failed. A deleted pod does, unless only failed pods are replaced."""
    if pod.phase == FAILED:
        return True
    return pod.deleting and pod.phase != SUCCEEDED and not replaces_failed_only(job)


def state_of(job: ReadOnlyTree, pods: Sequence[PodView], memory: Failures) -> JobState:
    status = job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    active = tuple(pod for pod in pods if pod.is_active)
    uncounted_pods = _UncountedPods(job, pods)
    succeeded = uncounted_pods.pods(uncounted.get("succeeded") or (), lambda pod: pod.phase == SUCCEEDED)
    failed = uncounted_pods.pods(uncounted.get("failed") or (), lambda pod: is_failed(job, pod))
    indexes = _CompletionIndexes(job, pods) if is_indexed(job) else None
    succeeded_indexes = indexes.succeeded_indexes() if indexes else index_ranges.NONE
    failed_indexes = indexes.failed_indexes() if indexes and has_index_backoff_limit(job) else None
    return JobState(
        job=job,
        pods=tuple(pods),
        active=active,
        terminating=sum(pod.deleting and not pod.is_terminal for pod in pods),
        ready=sum(pod.is_ready for pod in active),
        succeeded=index_ranges.total(succeeded_indexes)
        if indexes
        else _count(status, "succeeded") + len(succeeded) + len(uncounted.get("succeeded") or ()),
        failed=_count(status, "failed")
        + sum(pod_failure(job, pod).counts for pod in failed)
        + len(uncounted.get("failed") or ()),
        counted_indexes=indexes.counted if indexes else index_ranges.NONE,
        succeeded_indexes=succeeded_indexes,
        failed_indexes=failed_indexes,
        replaceable=uncounted_pods.replaceable(active, succeeded_indexes, failed_indexes)
        if failed_indexes is not None
        else {},
        failures=memory.with_pods(succeeded, failed),
    )


def _count(status: ReadOnlyTree, field: str) -> int:
    return status.get(field) or 0


class _UncountedPods:
    """The pods of a Job that are not counted yet."""

    def __init__(self, job: ReadOnlyTree, pods: Sequence[PodView]) -> None:
        self._job = job
        self._tracked = [pod for pod in pods if is_tracked(pod) and self._is_valid(pod)]

    def pods(self, uncounted: Iterable[str], has_ended: Callable[[PodView], bool]) -> list[PodView]:
        uncounted_uids = set(uncounted)
        return [pod for pod in self._tracked if pod.uid not in uncounted_uids and has_ended(pod)]

    def replaceable(
        self, active: Sequence[PodView], succeeded: Intervals, failed: Intervals
    ) -> Mapping[int, PodView]:
        running = indexes_of(active)
        pods_by_index: dict[int, PodView] = {}
        for pod in self._tracked:
            index = index_of(pod)
            if index is None or index in running or not is_failed(self._job, pod):
                continue
            if index_ranges.contains(succeeded, index) or index_ranges.contains(failed, index):
                continue
            if index not in pods_by_index or _is_successor(pod, pods_by_index[index]):
                pods_by_index[index] = pod
        return pods_by_index

    def _is_valid(self, pod: PodView) -> bool:
        return not is_indexed(self._job) or _has_index_below(pod, self._job["spec"]["completions"])


def _is_successor(pod: PodView, other: PodView) -> bool:
    return all_failures(other) <= all_failures(pod) and finish_time(pod) >= finish_time(other)


def _has_index_below(pod: PodView, completions: int) -> bool:
    index = index_of(pod)
    return index is not None and index < completions


class _CompletionIndexes:
    """The indexes of a Job that have succeeded, and those that have failed."""

    def __init__(self, job: ReadOnlyTree, pods: Sequence[PodView]) -> None:
        status: Mapping[str, Any] = job.get("status") or {}
        completions = job["spec"]["completions"]
        self._job = job
        self._pods = [pod for pod in pods if is_tracked(pod) and _has_index_below(pod, completions)]
        self._counted_failed = index_ranges.parse(status.get("failedIndexes") or "", completions)
        self.counted = index_ranges.parse(status.get("completedIndexes") or "", completions)

    def succeeded_indexes(self) -> Intervals:
        new = indexes_of(pod for pod in self._pods if pod.phase == SUCCEEDED)
        return index_ranges.with_indexes(self.counted, new)

    def failed_indexes(self) -> Intervals:
        new = indexes_of(pod for pod in self._pods if self._fails_its_index(pod))
        return index_ranges.with_indexes(self._counted_failed, new)

    def _fails_its_index(self, pod: PodView) -> bool:
        if not is_failed(self._job, pod):
            return False
        failure = pod_failure(self._job, pod)
        if failure.action == FAIL_INDEX:
            return True
        return failure.counts and failure_count(pod) >= self._job["spec"]["backoffLimitPerIndex"]
