"""Executes effects on objects of one resource, and tracks its own writes that a cache has not seen yet.

The only writer of the simulation beside registration and heartbeats. A deleted object, or another of the same name,
is not written.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.client import AnyResource, Client
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.events.recorder import Recorder
from mockube.controller_manager.control.own_writes import EXPIRY_SECONDS
from mockube.controller_manager.kubelet.effects import Effect, EmitEvent, Remove, Write


class _Last(NamedTuple):
    uid: str
    revision: float
    """Of the last write; infinite once the object was removed."""
    decided_on: int
    """What was seen of the object when this was decided."""
    at: float


class StatusWriter:
    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        resource: AnyResource,
        clock: Clock,
        *,
        host: Callable[[ReadOnlyTree], str] = lambda _: "",
    ) -> None:
        """`host` returns the node of an object's Events."""
        self._client = client
        self._recorder = recorder
        self._host = host
        self._resource = resource
        self._clock = clock
        self._last: dict[Key, _Last] = {}

    def is_outdated(self, key: Key, cached: ReadOnlyTree) -> bool:
        """Something was written since, so what the cache shows would be decided twice."""
        last = self._last.get(key)
        if last is None or last.uid != meta.uid(cached):
            return False
        # A server that was restored to an older state never reaches this version.
        is_recent = self._clock.monotonic() < last.at + EXPIRY_SECONDS
        return is_recent and _revision(cached) < last.revision

    def is_own(self, key: Key, before: ReadOnlyTree, obj: ReadOnlyTree) -> bool:
        """Return whether no other write happened between the observed object and the last write."""
        last = self._last.get(key)
        step = (meta.uid(obj), _revision(obj), _revision(before))
        return last is not None and (last.uid, last.revision, last.decided_on) == step

    def forget(self, key: Key) -> None:
        self._last.pop(key, None)

    async def execute(self, key: Key, obj: ReadOnlyTree, effects: Iterable[Effect]) -> ReadOnlyTree | None:
        """The object after the last write; None once it is deleted."""
        decided_on = _revision(obj)
        for effect in effects:
            match effect:
                case Write(body=body, kind=kind, subresource=subresource):
                    try:
                        obj = await self._client.patch(
                            self._resource, key, body, kind=kind, subresource=subresource
                        )
                    except NotFound:
                        return None
                    self._note_write(key, obj, _revision(obj), decided_on)
                case Remove():
                    await self._remove(key, obj)
                    return None
                case EmitEvent(type=kind_of_event, reason=reason, message=message, part=part):
                    self._recorder.record_on(self._host(obj), obj, kind_of_event, reason, message, part=part)
        return obj

    async def _remove(self, key: Key, obj: ReadOnlyTree) -> None:
        uid = meta.uid(obj)
        revision = float("inf")
        with suppress(NotFound):
            answer = await self._client.delete(self._resource, key, uid=uid, grace_period_seconds=0)
            if meta.uid(answer) == uid and meta.finalizers(answer):
                revision = _revision(answer)
        self._note_write(key, obj, revision, _revision(obj))

    def _note_write(self, key: Key, obj: ReadOnlyTree, revision: float, decided_on: int) -> None:
        self._last[key] = _Last(meta.uid(obj), revision, decided_on, self._clock.monotonic())


def _revision(obj: ReadOnlyTree) -> int:
    return int(meta.resource_version(obj))
