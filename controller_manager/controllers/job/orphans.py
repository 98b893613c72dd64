"""The controller that removes the tracking finalizer from pods whose Job is deleted, finished or absent."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import JOBS, PODS
from mockube.client.podview import PodView
from mockube.client.queue.workqueue import RetryBackoff
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Plan
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.workloads.ownership import BY_OWNER, owner_of_pod

from .pods import finalizer_removal
from .state import is_finished, is_managed_elsewhere, is_tracked


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    pod = caches.of(PODS).get(*key)
    if pod is None or not is_tracked(pod) or not _is_orphan(caches, pod):
        return EMPTY_PLAN
    return Plan(actions=(finalizer_removal((pod,)),))


def _is_orphan(caches: Caches, pod: PodView) -> bool:
    reference = meta.controller_of(pod.object)
    if reference is None:
        return True
    if (reference["kind"], reference["apiVersion"]) != (JOBS.kind, JOBS.api_version):
        return False
    job = _job(caches, pod, reference)
    return job is None or (is_finished(job) and not is_managed_elsewhere(job))


def _job(caches: Caches, pod: PodView, reference: ReadOnlyTree) -> ReadOnlyTree | None:
    job = caches.of(JOBS).get(pod.key.namespace, reference["name"])
    return job if job is not None and meta.uid(job) == reference["uid"] else None


def _pod_key(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the key of a pod that has no owner, or is being deleted after its Job has ended."""
    pod: PodView | None = change.new
    if pod is not None and is_tracked(pod) and (pod.deleting or not pod.owner_uid):
        return (pod.key,) if _is_orphan(caches, pod) else ()
    return ()


def _pods_of_job(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the keys of the tracked pods of a Job that is deleted or finished."""
    job = change.last_known
    if change.new is not None and not (change.old is not None and is_finished(job)):
        return ()
    return [pod.key for pod in caches.of(PODS).by_index(BY_OWNER, meta.uid(job)) if is_tracked(pod)]


JOB_ORPHAN_PODS: Final = Controller(
    name="job-orphan-pod-controller",
    queue="job_orphan_pod",
    service_account="job-controller",
    watches=(Watch(resource=PODS, keys=_pod_key), Watch(resource=JOBS, keys=_pods_of_job)),
    reconcile=reconcile,
    retries=RetryBackoff(base=1.0, max_seconds=60.0),
    workers=5,
    indexes={PODS: {BY_OWNER: owner_of_pod}},
)
