"""Executes effects on the objects of one resource, and tracks own writes that the cache does not contain yet.

It is the only writer of simulated objects apart from registration and heartbeats. It does not write to a deleted
object, nor to another object of the same name.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.revisions import EXPIRY_SECONDS
from mockube.client.events.recorder import Recorder
from mockube.client.resources import Key
from mockube.client.verbs import AnyResource, Client
from mockube.component_base.clock import Clock
from mockube.container_runtime.records import Records

from .owner_events import OwnerEvents
from .step_effects import DeleteObject, Effect, EmitEvent, PatchObject


class _LastWrite(NamedTuple):
    revision: float
    """The resource version after the write; infinite if the write deleted the object."""
    base_revision: int
    """The resource version of the object from which the write was computed."""
    written_at: float


class _Occasions(dict[tuple[str, str], str]):
    """The latest occasions of events of an object that are recorded once, by reason and part."""


class StatusWriter:
    def __init__(
        self,
        records: Records,
        client: Client,
        recorder: Recorder,
        resource: AnyResource,
        clock: Clock,
        *,
        host: Callable[[ReadOnlyTree], str] = lambda _: "",
    ) -> None:
        """`host` returns the source host of an object's events."""
        self._records = records
        self._client = client
        self._recorder = recorder
        self._owner_events = OwnerEvents(records, recorder)
        self._host = host
        self._resource = resource
        self._clock = clock

    def is_outdated(self, cached: ReadOnlyTree) -> bool:
        """Return whether the cache does not contain the last write, so that the same step would be executed twice."""
        last = self._records.find(meta.uid(cached), _LastWrite)
        if last is None:
            return False
        # A server that was restored to an older state may never reach this version.
        is_recent = self._clock.monotonic() < last.written_at + EXPIRY_SECONDS
        return is_recent and _revision(cached) < last.revision

    def is_own(self, before: ReadOnlyTree, obj: ReadOnlyTree) -> bool:
        """Return whether a change from `before` to `obj` consists of the last own writes only."""
        last = self._records.find(meta.uid(obj), _LastWrite)
        return last is not None and (last.revision, last.base_revision) == (_revision(obj), _revision(before))

    def note_cached(self, cached: ReadOnlyTree) -> None:
        """Drop the last write if the cache contains it."""
        last = self._records.find(meta.uid(cached), _LastWrite)
        if last is not None and _revision(cached) >= last.revision:
            self._records.pop(meta.uid(cached), _LastWrite)

    async def execute(self, key: Key, obj: ReadOnlyTree, effects: Iterable[Effect]) -> ReadOnlyTree | None:
        """Execute the effects in order; return the object after the last write, or None if it is deleted."""
        base_revision = _revision(obj)
        for effect in effects:
            match effect:
                case PatchObject(body=body, kind=kind, subresource=subresource):
                    try:
                        obj = await self._client.patch(
                            self._resource, key, body, kind=kind, subresource=subresource
                        )
                    except NotFound:
                        return None
                    self._note_write(obj, _revision(obj), base_revision)
                case DeleteObject():
                    await self._remove(key, obj)
                    return None
                case EmitEvent(type=kind_of_event, reason=reason, message=message, part=part):
                    if effect.once and not self._begins_occasion(meta.uid(obj), effect):
                        continue
                    if effect.of_owner:
                        self._owner_events.record(self._host(obj), obj, effect)
                    else:
                        self._recorder.record_on(
                            self._host(obj), obj, kind_of_event, reason, message, part=part
                        )
        return obj

    def _begins_occasion(self, uid: str, event: EmitEvent) -> bool:
        """Note the occasion of an event; return whether the event was not recorded at it."""
        occasions, key = self._records.ensure(uid, _Occasions), (event.reason, event.part)
        is_new = occasions.get(key) != event.once
        occasions[key] = event.once
        return is_new

    async def _remove(self, key: Key, obj: ReadOnlyTree) -> None:
        uid = meta.uid(obj)
        revision = float("inf")
        with suppress(NotFound):
            answer = await self._client.delete(self._resource, key, uid=uid, grace_period_seconds=0)
            if meta.uid(answer) == uid and meta.finalizers(answer):
                revision = _revision(answer)
        self._note_write(obj, revision, _revision(obj))

    def _note_write(self, obj: ReadOnlyTree, revision: float, base_revision: int) -> None:
        last = _LastWrite(revision, base_revision, self._clock.monotonic())
        self._records.put(meta.uid(obj), last)


def _revision(obj: ReadOnlyTree) -> int:
    return int(meta.resource_version(obj))
