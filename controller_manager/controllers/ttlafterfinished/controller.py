"""Delete Jobs, and what they own, so many seconds after they have finished."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import JOBS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import NOTHING, Confirm, Delete, ObjectRef, Plan
from mockube.controller_manager.control.controller import Controller, Watch

_FINISHED: Final = ("Complete", "Failed")


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    job = caches.of(JOBS).get(*key)
    expiry = None if job is None else _expiry(job)
    if job is None or expiry is None:
        return NOTHING
    if expiry > now:
        return Plan(again_after=expiry - now)
    # Its time may have been changed since the cache has seen it.
    confirm = Confirm(resource=JOBS, namespace=key.namespace, name=key.name, holds=partial(_is_over, now))
    delete = Delete(resource=JOBS, victims=(ObjectRef.of(job),), propagation="Foreground")
    return Plan(actions=(confirm, delete))


def _expiry(job: ReadOnlyTree) -> datetime | None:
    """When it is to be deleted; None if it is not."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    ended = [
        found for found in conditions.of(job) if found["type"] in _FINISHED and found["status"] == "True"
    ]
    if seconds is None or meta.is_deleting(job) or not ended or not ended[0].get("lastTransitionTime"):
        return None
    return after(parse_time(ended[0]["lastTransitionTime"]), span_of(seconds))


def _is_over(now: datetime, found: Sequence[ReadOnlyTree]) -> bool:
    expiries = [_expiry(job) for job in found]
    return all(expiry is not None and expiry <= now for expiry in expiries)


def _of_job(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None or _expiry(change.new) is None else (Key.of(change.new),)


TTL_AFTER_FINISHED: Final = Controller(
    name="ttl-after-finished-controller",
    queue="ttl_jobs_to_delete",
    service_account="ttl-after-finished-controller",
    watches=(Watch(resource=JOBS, keys=_of_job),),
    reconcile=reconcile,
    workers=5,
)
