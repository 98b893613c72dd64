"""The TTL-after-finished controller: it deletes Jobs and their dependents some time after they have finished."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import JOBS
from mockube.client.resources import Key
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager import metric_families as families
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Confirm,
    Delete,
    ObjectRef,
    Plan,
    PlanResult,
)
from mockube.controller_manager.control.controller import Controller, OutcomeMetrics, Watch

_FINISHED: Final = ("Complete", "Failed")
BUCKETS: Final = tuple(0.1 * 2**power for power in range(14))
"""The buckets of delays in seconds; they are upstream's."""


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    job = caches.of(JOBS).get(*key)
    expiry = None if job is None else _expiry(job)
    if job is None or expiry is None:
        return EMPTY_PLAN
    if expiry > now:
        return Plan(requeue_after=expiry - now)
    # The TTL may have changed on the server.
    confirm = Confirm(resource=JOBS, namespace=key.namespace, name=key.name, holds=partial(_is_expired, now))
    delete = Delete(resource=JOBS, objects=(ObjectRef.of(job),), propagation="Foreground")
    return Plan(actions=(confirm, delete))


def _expiry(job: ReadOnlyTree) -> datetime | None:
    """Return the time when a Job has to be deleted; None if it is not deleted."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    ended = [
        condition
        for condition in conditions.of(job)
        if condition["type"] in _FINISHED and condition["status"] == "True"
    ]
    if seconds is None or meta.is_deleting(job) or not ended or not ended[0].get("lastTransitionTime"):
        return None
    return after(parse_time(ended[0]["lastTransitionTime"]), span_of(seconds))


def _is_expired(now: datetime, jobs: Sequence[ReadOnlyTree]) -> bool:
    expiries = [_expiry(job) for job in jobs]
    return all(expiry is not None and expiry <= now for expiry in expiries)


def _job_key(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None or _expiry(change.new) is None else (Key.of(change.new),)


class DeletionMetrics(OutcomeMetrics):
    """Measures the delay of deletions of finished Jobs."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._delays = metrics.distributions(families.TTL_DELETION).of()

    def observe(self, primary: Any, outcome: PlanResult, seconds: float, now: datetime) -> None:  # noqa: ARG002
        expiry = None if primary is None else _expiry(primary)
        if expiry is not None and outcome.of(Delete):
            self._delays.observe((now - expiry).total_seconds())


TTL_AFTER_FINISHED: Final = Controller(
    name="ttl-after-finished-controller",
    queue="ttl_jobs_to_delete",
    service_account="ttl-after-finished-controller",
    watches=(Watch(resource=JOBS, keys=_job_key),),
    reconcile=reconcile,
    outcome_metrics=DeletionMetrics,
    workers=5,
)
