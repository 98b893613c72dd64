"""The pods that a Job creates or deletes next, and the bodies of new ones."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_JOB_COMPLETION_INDEX,
    FINALIZER_JOB_TRACKING,
    LABEL_JOB_COMPLETION_INDEX,
)
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Action, ObjectRef, RemoveFinalizer
from mockube.controller_manager.workloads.deletion_order import pods_to_delete_first
from mockube.controller_manager.workloads.pod_control import pod_creation, pod_deletion
from mockube.controller_manager.workloads.templates import pod_of

from . import index_ranges
from .backoff import backoff_left, finish_time, shortest_span
from .policies import pod_failure
from .state import (
    FAILURE_COUNT,
    IGNORED_FAILURE_COUNT,
    JobState,
    all_failures,
    failure_count,
    has_index_backoff_limit,
    index_of,
    indexes_of,
    is_indexed,
    is_suspended,
    replaces_failed_only,
)

MAX_CONCURRENT_PODS: Final = 500
"""The maximum number of pods that one reconciliation creates or deletes."""
_MAX_PREFIX_LENGTH: Final = 58
"""The maximum length of `generateName`."""
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"


class PodChange(Struct, frozen=True, kw_only=True):
    """The creation or deletion of pods, never both; or none, and the time after which to reconcile again."""

    actions: tuple[Action, ...] = ()
    requeue_after: timedelta | None = None


def pod_change(state: JobState, now: datetime) -> PodChange:
    desired = 0 if is_suspended(state.job) else _desired_active(state)
    surplus = _pods_to_delete(state, max(0, len(state.active) - desired), now)
    if is_suspended(state.job):
        return PodChange(actions=_deletion_actions(state, surplus))
    if surplus:
        return PodChange(actions=_deletion_actions(state, surplus[:MAX_CONCURRENT_PODS]))
    terminating = state.terminating if replaces_failed_only(state.job) else 0
    return _creation(state, desired - terminating - len(state.active), now)


def _desired_active(state: JobState) -> int:
    completions: int | None = state.spec.get("completions")
    parallelism: int = state.spec["parallelism"]
    if completions is None:
        return len(state.active) if state.succeeded else parallelism
    return max(0, min(parallelism, completions - state.succeeded))


# --- deletion


def finalizer_removal(pods: Iterable[PodView]) -> RemoveFinalizer:
    refs = tuple(ObjectRef(pod.key, pod.uid) for pod in pods)
    return RemoveFinalizer(resource=PODS, objects=refs, finalizer=FINALIZER_JOB_TRACKING)


def _deletion_actions(state: JobState, pods: Sequence[PodView]) -> tuple[Action, ...]:
    """Return the actions that delete surplus pods. Their finalizers are removed first, so that they are not counted."""
    return (finalizer_removal(pods), pod_deletion(state.job, pods)) if pods else ()


def _pods_to_delete(state: JobState, at_least: int, now: datetime) -> Sequence[PodView]:
    """Return at least `at_least` pods, and all pods with an invalid index or with the index of another pod."""
    to_delete: list[PodView] = []
    if is_indexed(state.job):
        by_index: dict[int, list[PodView]] = {}
        for pod in state.active:
            index = index_of(pod)
            if index is None or index >= state.spec["completions"]:
                to_delete.append(pod)
            else:
                by_index.setdefault(index, []).append(pod)
        for pods in by_index.values():
            to_delete += pods_to_delete_first(pods, len(pods) - 1, (), now) if len(pods) > 1 else ()
    if len(to_delete) >= at_least:
        return to_delete
    remaining = [pod for pod in state.active if pod not in to_delete]
    return [*to_delete, *pods_to_delete_first(remaining, at_least - len(to_delete), (), now)]


# --- creation


def _creation(state: JobState, count: int, now: datetime) -> PodChange:
    if count <= 0:
        return PodChange()
    job = state.job
    if not has_index_backoff_limit(job) and (delay := state.failures.backoff_left_at(now)):
        return PodChange(requeue_after=delay)
    count = min(count, MAX_CONCURRENT_PODS)
    if not is_indexed(job):
        return PodChange(actions=(pod_creation(job, (_pod(job),) * count),))
    indexes = _first_pending_indexes(state, count)
    delays = {index: _index_delay(state.replaceable.get(index), now) for index in indexes}
    due = [index for index in indexes if not delays[index]]
    if not due:
        return PodChange(requeue_after=shortest_span(delays.values()))
    return PodChange(actions=(pod_creation(job, tuple(_indexed_pod(state, index) for index in due)),))


def _first_pending_indexes(state: JobState, count: int) -> Sequence[int]:
    used_indexes = index_ranges.with_indexes(state.succeeded_indexes, indexes_of(state.active))
    if replaces_failed_only(state.job):
        terminating = (pod for pod in state.pods if pod.deleting and not pod.is_terminal)
        used_indexes = index_ranges.with_indexes(used_indexes, indexes_of(terminating))
    used_indexes = index_ranges.merge(used_indexes, state.failed_indexes or index_ranges.NONE)
    return index_ranges.first_missing(used_indexes, count, state.spec["completions"])


def _index_delay(predecessor: PodView | None, now: datetime) -> timedelta:
    """Return the time until an index may be retried."""
    if predecessor is None:
        return timedelta()
    return backoff_left(all_failures(predecessor) + 1, finish_time(predecessor), now)


def _pod(job: ReadOnlyTree) -> dict[str, Any]:
    pod = pod_of(job["spec"]["template"], job)
    finalizers = [*meta.finalizers(pod)]
    if FINALIZER_JOB_TRACKING not in finalizers:
        finalizers.append(FINALIZER_JOB_TRACKING)
    return meta.with_metadata(pod, finalizers=finalizers)


def _indexed_pod(state: JobState, index: int) -> dict[str, Any]:
    name, number = meta.name(state.job), str(index)
    pod = meta.with_labels(_pod(state.job), {LABEL_JOB_COMPLETION_INDEX: number})
    annotations = {ANNOTATION_JOB_COMPLETION_INDEX: number, **_failure_count_annotations(state, index)}
    pod = meta.with_annotations(pod, annotations)
    suffix = f"-{number}-"
    pod = meta.with_metadata(pod, generateName=f"{name[: _MAX_PREFIX_LENGTH - len(suffix)]}{suffix}")
    return {**pod, "spec": {**_with_index_in_containers(pod["spec"]), "hostname": f"{name}-{number}"}}


def _failure_count_annotations(state: JobState, index: int) -> dict[str, str | None]:
    """Return the annotations with the number of the index's failures, for the pod that retries it."""
    if not has_index_backoff_limit(state.job):
        return {}
    predecessor = state.replaceable.get(index)
    if predecessor is None:
        return {FAILURE_COUNT: "0"}
    counts = pod_failure(state.job, predecessor).counts
    ignored = failure_count(predecessor, IGNORED_FAILURE_COUNT) + (not counts)
    annotations: dict[str, str | None] = {FAILURE_COUNT: str(failure_count(predecessor) + counts)}
    return annotations | ({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})


def _with_index_in_containers(spec: ReadOnlyTree) -> dict[str, Any]:
    fields = [field for field in ("initContainers", "containers") if spec.get(field)]
    return {**spec, **{field: [*map(_with_index_in_env, spec[field])] for field in fields}}


def _with_index_in_env(container: ReadOnlyTree) -> ReadOnlyTree:
    variables = container.get("env") or []
    if any(variable["name"] == _INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{LABEL_JOB_COMPLETION_INDEX}']"}}
    return {**container, "env": [*variables, {"name": _INDEX_VARIABLE, "valueFrom": source}]}
