"""The latest versions of pods, and who waits for the next one (`PodVersions`)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change, Lister
from mockube.client.podview import PodView
from mockube.client.resources import Key


class PodWatchers:
    """Wakes those that follow a pod after a change of the pod, or new output of its containers."""

    def __init__(self, pods: Lister[PodView]) -> None:
        self._pods = pods
        self._events: dict[Key, set[asyncio.Event]] = {}

    def on_change(self, change: Change) -> None:
        self._wake(change.last_known.key)

    def wake(self, pod: ReadOnlyTree) -> None:
        if self._events:
            self._wake(Key.of(pod))

    def latest(self, pod: ReadOnlyTree) -> ReadOnlyTree | None:
        current = self._pods.get(*Key.of(pod))
        return current.object if current is not None and current.uid == meta.uid(pod) else None

    @contextmanager
    def subscribe(self, pod: ReadOnlyTree) -> Iterator[asyncio.Event]:
        event, key = asyncio.Event(), Key.of(pod)
        self._events.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            self._events[key].discard(event)
            if not self._events[key]:
                del self._events[key]

    def _wake(self, key: Key) -> None:
        for event in self._events.get(key, ()):
            event.set()
