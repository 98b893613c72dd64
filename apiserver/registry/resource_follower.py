"""Resources that a task of the server follows as a whole: it is told that something changed, and looks at all of it."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.storage.resource_cache import Change


class _Follower(Struct):
    prefix: bytes
    changed: asyncio.Event

    def offer(self, _change: Change) -> None:
        self.changed.set()

    def miss(self) -> None:
        self.changed.set()


@contextmanager
def followed(backend: Backend, resources: Sequence[Resource]) -> Iterator[asyncio.Event]:
    """Set the event at once and at each change, until the end of the block."""
    changed = asyncio.Event()
    changed.set()
    watch_cache = backend.watch_cache
    caches = [watch_cache.resource_cache(backend.layout.resource_cache(each)) for each in resources]
    followers = [_Follower(cache.prefix, changed) for cache in caches]
    watch_cache.on_reset.append(changed.set)
    for cache, follower in zip(caches, followers, strict=True):
        cache.follow(follower)
    try:
        yield changed
    finally:
        watch_cache.on_reset.remove(changed.set)
        for cache, follower in zip(caches, followers, strict=True):
            cache.unfollow(follower)
