"""Resources that a task of the server watches: it is notified of a change, or of the keys that changed.

A request waits for one object here.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.storage.cache_watchers import CacheWatcher
from mockube.apiserver.storage.recent_changes import Change
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject

from .registry import Backend

_Watcher = TypeVar("_Watcher", bound=CacheWatcher)


class _Subscriber(Struct):
    prefix: bytes
    changed: asyncio.Event

    def handle_change(self, _change: Change) -> None:
        self.changed.set()

    def handle_missed_change(self) -> None:
        self.changed.set()


@contextmanager
def watched_resources(backend: Backend, resources: Sequence[Resource]) -> Iterator[asyncio.Event]:
    """Set the event at once and at each change, until the end of the block."""
    changed = asyncio.Event()
    changed.set()
    with _watching(backend, resources, lambda cache: _Subscriber(cache.prefix, changed)):
        yield changed


class ChangedKeys:
    """The keys of objects of one resource that have changed since they were last taken."""

    def __init__(self, cache: ResourceCache, changed: asyncio.Event) -> None:
        self.prefix = cache.prefix
        self._cache = cache
        self._changed = changed
        self._keys: dict[bytes, None] = {}
        self._has_missed = True

    def handle_change(self, change: Change) -> None:
        self._keys[change.after.key] = None
        self._changed.set()

    def handle_missed_change(self) -> None:
        self._has_missed = True
        self._changed.set()

    def take(self, known_keys: Iterable[bytes] = ()) -> Sequence[bytes]:
        """Return the changed keys: after missed changes all keys in the cache and all `known_keys`."""
        keys, self._keys = self._keys, {}
        if self._has_missed:
            self._has_missed = False
            keys = dict.fromkeys((*self._cache.objects, *known_keys))
        return [*keys]


@contextmanager
def watched_keys(
    backend: Backend, resources: Sequence[Resource]
) -> Iterator[tuple[asyncio.Event, Sequence[ChangedKeys]]]:
    """Set the event at once and at each change, until the end of the block, and collect keys for each resource."""
    changed = asyncio.Event()
    changed.set()
    with _watching(backend, resources, lambda cache: ChangedKeys(cache, changed)) as watchers:
        yield changed, watchers


@contextmanager
def _watching(
    backend: Backend, resources: Sequence[Resource], make: Callable[[ResourceCache], _Watcher]
) -> Iterator[Sequence[_Watcher]]:
    """Subscribe a watcher for each resource until the end of the block; it is also notified of missed changes."""
    watch_cache = backend.watch_cache
    caches = [watch_cache.resource_cache(backend.layout.prefix(each)) for each in resources]
    watchers = [make(cache) for cache in caches]
    watch_cache.on_reset += [watcher.handle_missed_change for watcher in watchers]
    for cache, watcher in zip(caches, watchers, strict=True):
        cache.watchers.add(watcher)
    try:
        yield watchers
    finally:
        for cache, watcher in zip(caches, watchers, strict=True):
            watch_cache.on_reset.remove(watcher.handle_missed_change)
            cache.watchers.remove(watcher)


async def wait_for_object(
    backend: Backend, resource: GroupResource, namespace: str, name: str, *, seconds: float
) -> StoredObject | None:
    """Return an object that does not exist yet, as soon as the watch cache has it; None if the store has none after `seconds`."""
    row = backend.rows[resource]
    changed = asyncio.Event()
    watcher = _Subscriber(backend.layout.object(row, namespace, name), changed)
    cache = backend.resource_cache(resource)
    cache.watchers.add(watcher)
    timer = backend.clock.real.call_later(seconds, changed.set)
    try:
        await changed.wait()
    finally:
        timer.cancel()
        cache.watchers.remove(watcher)
    return backend.find_cached(resource, namespace, name) or await backend.find(row, namespace, name)
