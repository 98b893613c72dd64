"""A periodic comparison of the watch cache with the store, because a wrong watch cache is not noticed otherwise.

Each resource cache is compared with its range of the store, a slice of keys at a time, each at the revision at which
the slice was read; no value is read, and other tasks run between slices. A difference is a bug of this server or of
the store: it is logged with its keys and counted, and everything is listed again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from mockube.component_base.clock import Clock
from mockube.etcd.errors import KVError
from mockube.etcd.kv import KV, KeyValue, Range, prefix_end

from .recent_changes import TooOldResourceVersion
from .resource_cache import ResourceCache
from .watch_cache import WatchCache

LOG = logging.getLogger(__name__)

INTERVAL_SECONDS = 300.0
PAUSE_SECONDS = 0.01
"""The pause between two slices."""
SLICE = 1000
"""Keys compared at a time, in less than a millisecond."""
MAX_NAMED_KEYS = 20
"""The maximum of keys in an error."""


class ConsistencyCheck:
    """Compares the watch cache with the store. `count` is called with a prefix and success, failure or error."""

    def __init__(
        self,
        kv: KV,
        watch_cache: WatchCache,
        *,
        clock: Clock,
        count: Callable[[bytes, str], None],
        keys_at_a_time: int = SLICE,
    ) -> None:
        self._kv = kv
        self._watch_cache = watch_cache
        self._clock = clock
        self._count = count
        self._limit = keys_at_a_time

    async def run(self) -> None:
        """Call `turn` at every interval until cancelled."""
        while True:
            await self._clock.routine.sleep(INTERVAL_SECONDS)
            await self.turn()

    async def turn(self) -> None:
        """Check every resource cache once; rebuild the watch cache if one of them is wrong."""
        wrong_keys: list[bytes] = []
        for resource_cache in self._watch_cache.folders.claimed_caches():
            try:
                differing_keys = await self._compare(resource_cache)
            except KVError as error:
                LOG.warning(
                    "The watch cache of %s could not be checked: %s", resource_cache.prefix.decode(), error
                )
                self._count(resource_cache.prefix, "error")
                continue
            self._count(resource_cache.prefix, "failure" if differing_keys else "success")
            wrong_keys += differing_keys
        if wrong_keys:
            LOG.error(
                "The watch cache differs from the store and is rebuilt: %d keys differ: %s",
                len(wrong_keys),
                b", ".join(wrong_keys[:MAX_NAMED_KEYS]).decode(errors="replace"),
            )
            await self._watch_cache.rebuild()

    async def _compare(self, resource_cache: ResourceCache) -> Sequence[bytes]:
        """Return the keys of a resource cache that differ from the store."""
        wrong_keys: list[bytes] = []
        low, end = resource_cache.prefix, prefix_end(resource_cache.prefix)
        while True:
            page = await self._kv.range(Range(key=low, range_end=end, limit=self._limit, keys_only=True))
            high = page.kvs[-1].key + b"\x00" if page.more else end
            await self._watch_cache.wait_reached(page.revision)
            wrong_keys += _differences(
                resource_cache,
                (low, high),
                page.kvs,
                page.revision,
                unreadable_revisions=self._watch_cache.unreadable.revisions,
            )
            if page.kvs:
                await self._clock.routine.sleep(PAUSE_SECONDS)
            if not page.more:
                return wrong_keys
            low = high


def _differences(
    resource_cache: ResourceCache,
    interval: tuple[bytes, bytes],
    kvs: Sequence[KeyValue],
    revision: int,
    *,
    unreadable_revisions: Mapping[bytes, int],
) -> Sequence[bytes]:
    """Return the keys of an interval whose cached objects differ from the store's at a revision."""
    try:
        later = {change.after.key for change in resource_cache.history.since(revision, resource_cache.prefix)}
    except TooOldResourceVersion:  # everything was listed again meanwhile
        return ()
    unread = {kv.key for kv in kvs if unreadable_revisions.get(kv.key) == kv.mod_revision}
    store_versions = {(kv.key, kv.mod_revision) for kv in kvs}
    cache_versions = {(stored.key, stored.revision) for stored in resource_cache.between(*interval)}
    return sorted({key for key, _ in store_versions ^ cache_versions} - later - unread)
