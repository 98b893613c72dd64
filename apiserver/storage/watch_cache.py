"""A copy of the store, kept up to date by one watch: lists and watches are served from it.

The objects of each resource and their recent changes are in `resource_cache.py`; `store_reflector.py` follows the store.
"""

from collections.abc import Callable, Sequence

from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.kv import KV

from .cache_lag import CacheLag
from .folders import Folders
from .progress import CacheProgress, finish
from .recent_changes import Change, ChangeKind
from .resource_cache import ResourceCache
from .store_reflector import StoreReflector
from .stored_object import StoredObject, other_kind
from .value_reader import ValueReader


class WatchCache:
    """The objects below one prefix of a store. A consistent read calls `fresh` first."""

    def __init__(self, kv: KV, root: bytes, *, clock: Clock, read: Callable[[bytes], bytes]) -> None:
        """`read` returns the canonical text of a value."""
        self._kv = kv
        self._clock = clock
        self.values = ValueReader(read)
        self.unreadable = self.values.unreadable
        self.progress = CacheProgress()
        self.folders = Folders(root, self.progress)
        self.on_reset: list[Callable[[], None]] = []
        """Called after everything was listed again: changes may be missing in between."""
        self._reflector = StoreReflector(
            kv, self.folders, self.values, self.progress, self.on_reset, clock=clock
        )
        self.lag = CacheLag(kv, self.folders, self.progress, self._reflector.request_progress, clock=clock)
        self._to_check: set[bytes] = set()
        """The folders whose cached objects may be of another kind or version than is expected."""
        self._is_outdated = False
        """Whether unreadable values may be readable now."""

    @property
    def revision(self) -> int:
        """The revision up to which every change is in the cache."""
        return self.progress.revision

    def resource_cache(self, prefix: bytes) -> ResourceCache:
        """Return the cache of a folder, such as /registry/pods/. Folders of one segment must be requested before `run`."""
        return self.folders.claim(prefix)

    def at_revision(self, prefix: bytes, key: bytes, revision: int) -> StoredObject | None:
        """Return the cached object of a key if it has that revision."""
        resource_cache = self.folders.find(prefix)
        stored = None if resource_cache is None else resource_cache.get(key)
        return stored if stored is not None and stored.revision == revision else None

    async def run(self) -> None:
        """Keep the watch cache up to date until cancelled."""
        await self._reflector.run()

    async def load(self, page: int) -> None:
        """List everything once, so many keys at a time, from a store that does not change."""
        await self._reflector.list_all(page)

    async def rebuild(self) -> None:
        """List everything again, because the cache is wrong; until then it is still used."""
        await self._reflector.rebuild()

    async def fresh(self) -> int:
        """Wait until the watch cache has all writes before this call; return its revision."""
        head = (await self._kv.status()).revision
        if head > self.progress.revision:
            await self._reflector.take_pending()
            await self.wait_reached(head)
        return self.progress.revision

    async def wait_reached(self, revision: int, *, within: float | None = None) -> bool:
        """Wait until the watch cache has a revision, at most `within` seconds; return whether it has."""
        if revision <= self.progress.revision:
            return True
        with self.progress.waiting_for(revision) as reached:
            timer = None if within is None else self._clock.real.call_later(within, lambda: finish(reached))
            try:
                await self._reflector.request_progress()
                await reached
            finally:
                if timer is not None:
                    timer.cancel()
        return revision <= self.progress.revision

    async def deliver(self) -> None:
        """Let watches send the last write, so that a client receives its event before the response."""
        sent_batches = self._reflector.watched_batches
        await yield_to_loop()  # the changes of requests that arrived together are one batch
        await self._reflector.take_pending()
        if self._reflector.watched_batches > sent_batches:
            await yield_to_loop()

    def report_malformed(self, stored: StoredObject, error: Exception) -> None:
        """Count and log an object of which only the metadata can be read."""
        self.unreadable.report(self.folders.of(stored.key), stored.key, stored.revision, error)

    def expect_kind(self, prefix: bytes, kind: str, api_versions: Sequence[str] = ()) -> None:
        """Treat values in a folder as unreadable unless they are of a kind, in one of some versions.

        Call `rebuild_if_outdated` afterwards, since unreadable values may be valid now.
        """
        if self.values.expect_kind(prefix, kind, api_versions):
            self._is_outdated = self._is_outdated or bool(self.unreadable.below(prefix))
            if self.folders.find(prefix) is not None:
                self._to_check.add(prefix)

    async def rebuild_if_outdated(self) -> None:
        """List everything again if values that could not be read may be readable by the present definitions.

        Otherwise only objects that are not expected any more are removed, a few at a time.
        """
        if self._is_outdated:
            self._is_outdated = False
            self._to_check.clear()
            await self.rebuild()
        while self._to_check:
            resource_cache = self.folders.cache(self._to_check.pop())
            for stored in [*resource_cache]:
                if not self.values.is_expected(resource_cache.prefix, stored):
                    self._remove_unexpected(resource_cache, stored)
                    await yield_to_loop()

    def _remove_unexpected(self, resource_cache: ResourceCache, stored: StoredObject) -> None:
        """Remove an object of another kind or version from the cache, unless it has changed meanwhile."""
        if resource_cache.get(stored.key) is stored:
            self.unreadable.add(resource_cache.prefix, stored.key, stored.revision, other_kind(stored.value))
            tombstone = stored.at(max(self.revision, resource_cache.history.newest))
            resource_cache.apply(Change(ChangeKind.DELETED, tombstone, stored, self._clock.monotonic()))
