"""A copy of the store, kept up to date by one watch: lists and watches are served from it.

The recent changes of each resource, and what resource version is too old, are in `resource_cache.py`. A consistent read
calls `fresh` first, which waits until the cache has the store's revision of that moment. A lost watch is resumed. If
history was compacted meanwhile, the cache lists again and ends the watches of clients, which may have missed events.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from mockube.apiserver.event_loop import batches
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.errors import Compacted, KVError
from mockube.etcd.kv import KV, Event, EventKind, KeyValue, Range, Watch, WatchBatch, WatchRequest, prefix_end

from .resource_cache import Change, ChangeKind, ResourceCache, UnreadableObjects
from .stored_object import StoredObject, TrustedValues, other_kind

LOG = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
PAGE = 10_000
"""Keys listed at a time."""
SLICE, SLICE_BYTES = 500, 512 * 1024
"""The maximum of changes or listed keys, and of their bytes, that are processed without yielding to the event loop."""
LAG_SECONDS = 5.0
"""The interval of comparisons with the store's revision, the same as of an embedded store's progress notifications."""


class WatchCache:
    """The objects below one prefix of a store."""

    def __init__(self, kv: KV, root: bytes, *, clock: Clock, read: Callable[[bytes], bytes]) -> None:
        self._kv = kv
        self._root = root
        self._clock = clock
        self._read = read
        """Returns the canonical text of a value."""
        self._resource_caches: dict[bytes, ResourceCache] = {}
        self._claimed: set[bytes] = set()
        self.revision = 0
        """Every change up to this revision is in the cache."""
        self._watch: Watch | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._list_done = asyncio.Event()
        self._consistent = asyncio.Event()
        """Clear while the resource caches have a part of a large batch of changes."""
        self._consistent.set()
        self.on_reset: list[Callable[[], None]] = []
        self.unreadable = UnreadableObjects()
        self._trusted = TrustedValues()
        self._kinds: dict[bytes, tuple[bytes, ...]] = {}
        """The start of the text of every object in a folder, for folders in which it is constant."""
        self._to_check: dict[bytes, tuple[bytes, ...]] = {}
        """The folders whose cached objects may be of another kind or version than is expected, with what is expected."""
        self._is_outdated = False
        """Whether unreadable values may be readable now."""
        self._watched_batches = 0  # batches with a change that a watcher had to send
        self._last_in_sync = clock.real.monotonic()
        """The last time at which the cache was known to have the store's revision."""

    def expect_kind(self, prefix: bytes, kind: str, api_versions: Sequence[str] = ()) -> None:
        """Treat values in a folder as unreadable unless they are of a kind, in one of some versions.

        Call `rebuild_if_outdated` afterwards, since unreadable values may be valid now.
        """
        begin = b'{"kind":"%b",' % kind.encode()
        heads = tuple(b'%b"apiVersion":"%b",' % (begin, version.encode()) for version in api_versions) or (
            begin,
        )
        if self._kinds.get(prefix, ()) == heads:
            return
        self._kinds[prefix] = heads
        self._is_outdated = self._is_outdated or bool(self.unreadable.below(prefix))
        if prefix in self._resource_caches:
            self._to_check[prefix] = heads

    async def rebuild_if_outdated(self) -> None:
        """List everything again if values that could not be read may be readable by the present definitions.

        Otherwise only objects that are not expected any more are removed, a few at a time.
        """
        if self._is_outdated:
            self._is_outdated = False
            self._to_check.clear()
            await self.rebuild()
        while self._to_check:
            prefix, heads = self._to_check.popitem()
            for stored in [*self._resource_caches[prefix]]:
                if not stored.value.startswith(heads):
                    self._remove_unexpected(prefix, stored)
                    await yield_to_loop()

    def _remove_unexpected(self, prefix: bytes, stored: StoredObject) -> None:
        """Remove an object of another kind or version from the cache, unless it has changed meanwhile."""
        resource_cache = self._resource_caches[prefix]
        if resource_cache.get(stored.key) is stored:
            self.unreadable.add(prefix, stored.key, stored.revision, other_kind(stored.value))
            tombstone = stored.at(max(self.revision, resource_cache.newest))
            resource_cache.apply(Change(ChangeKind.DELETED, tombstone, stored, self._clock.monotonic()))

    def resource_cache(self, prefix: bytes) -> ResourceCache:
        """Return the cache of a folder, such as /registry/pods/. Folders of one segment must be requested before `run`."""
        self._claimed.add(prefix)
        return self._resource_cache(prefix)

    def trust(self, key: bytes, text: bytes) -> None:
        """Mark canonical text that is about to be written as readable, until the watch receives it."""
        self._trusted.add(key, text)

    def at_revision(self, prefix: bytes, key: bytes, revision: int) -> StoredObject | None:
        """Return the cached object of a key if it has that revision."""
        resource_cache = self._resource_caches.get(prefix)
        stored = None if resource_cache is None else resource_cache.get(key)
        return stored if stored is not None and stored.revision == revision else None

    def report_malformed(self, stored: StoredObject, error: Exception) -> None:
        """Count and log an object of which only the metadata can be read."""
        self.unreadable.report(self._folder(stored.key), stored.key, stored.revision, error)

    def resource_caches(self) -> Sequence[ResourceCache]:
        return list(self._resource_caches.values())

    def claimed_caches(self) -> Sequence[ResourceCache]:
        """Return the caches that `resource_cache` has returned: those of the served resources."""
        return [self._resource_caches[prefix] for prefix in self._claimed]

    async def run(self) -> None:
        """Keep the watch cache up to date until cancelled."""
        while True:
            try:
                await self._list()
                await self._follow()
            except Compacted:
                LOG.warning("the watched revision was compacted: listing again")
            except KVError as error:
                LOG.warning("the store does not respond, retrying: %s", error)
                await self._clock.real.sleep(RETRY_SECONDS)

    async def rebuild(self) -> None:
        """List everything again, because the cache is wrong; until then it is still used."""
        if self._watch is not None:
            await self._watch.close()

    async def wait_listed(self) -> None:
        await self._list_done.wait()

    async def watch_lag(self) -> None:
        """Compare the store's revision at an interval until cancelled, for `seconds_behind`, and drop old changes."""
        while True:
            await self._clock.real.sleep(LAG_SECONDS)
            for cache in self.resource_caches():
                cache.forget_old(self._clock.monotonic())
            try:
                if await self.seconds_behind() and self._watch is not None:
                    # The newer revisions may be of other keys: a progress notification confirms that.
                    await self._watch.request_progress()
            except KVError as error:
                LOG.debug("the revision of the store cannot be read: %s", error)

    async def seconds_behind(self) -> float:
        """Return for how many seconds the cache has been behind the store; 0 if it is not."""
        head, now = (await self._kv.status()).revision, self._clock.real.monotonic()
        if head <= self.revision:
            self._last_in_sync = now
        return now - self._last_in_sync

    async def fresh(self) -> int:
        """Wait until the watch cache has all writes before this call; return its revision."""
        head = (await self._kv.status()).revision
        if head > self.revision:
            await self._take_pending()
            await self.wait_reached(head)
        return self.revision

    async def deliver(self) -> None:
        """Let watches send the last write, so that a client receives its event before the response."""
        sent_batches = self._watched_batches
        await yield_to_loop()  # the changes of requests that arrived together are one batch
        await self._take_pending()
        if self._watched_batches > sent_batches:
            await yield_to_loop()

    async def _take_pending(self) -> None:
        """Apply the batch that the watch already has, without its task."""
        watch = self._watch
        batch = watch.take_pending(SLICE) if watch is not None and self.is_consistent else None
        try:
            if batch is not None:
                self._take(batch)
        except BaseException:
            await self.rebuild()  # the batch is lost
            raise

    @property
    def is_consistent(self) -> bool:
        """Whether the caches have whole revisions; if not, a reader of many objects awaits `wait_consistent`."""
        return self._consistent.is_set()

    async def wait_consistent(self) -> None:
        """Wait until the resource caches have whole revisions, which is so until another task runs."""
        while not self._consistent.is_set():
            await self._consistent.wait()

    async def wait_reached(self, revision: int, *, within: float | None = None) -> bool:
        """Wait until the watch cache has a revision, at most `within` seconds; return whether it has."""
        if revision <= self.revision:
            return True
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = None if within is None else self._clock.real.call_later(within, lambda: _finish(reached))
        waiting = (revision, reached)
        self._waiting.append(waiting)
        try:
            if self._watch is not None:
                await self._watch.request_progress()
            await reached
        finally:
            self._waiting.remove(waiting)
            if timer is not None:
                timer.cancel()
        return revision <= self.revision

    async def _list(self) -> None:
        """Read everything at one revision."""
        objects_by_folder: dict[bytes, list[StoredObject]] = {}
        self.unreadable.clear()
        start, end, revision = self._root, prefix_end(self._root), 0
        while True:
            page = await self._kv.range(Range(key=start, range_end=end, limit=PAGE, revision=revision))
            revision = revision or page.revision
            for kvs in batches(page.kvs, lambda kv: len(kv.value), count=SLICE, max_bytes=SLICE_BYTES):
                for kv in kvs:
                    folder = self._folder(kv.key)
                    stored = self._find_unchanged(folder, kv) or self._read_stored(folder, kv)
                    if stored is not None:
                        objects_by_folder.setdefault(folder, []).append(stored)
                await yield_to_loop()
            if not page.more:
                break
            start = page.kvs[-1].key + b"\x00"
        self._fill(objects_by_folder, revision)

    def _fill(self, objects_by_folder: Mapping[bytes, Sequence[StoredObject]], revision: int) -> None:
        for folder in self._resource_caches.keys() | objects_by_folder.keys():
            resource_cache = self._resource_caches.setdefault(folder, ResourceCache(folder))
            is_whole = not objects_by_folder and not self.unreadable
            resource_cache.reset(objects_by_folder.get(folder, ()), revision, is_whole=is_whole)
        restarted = self._list_done.is_set()
        self._advance(revision)
        self._consistent.set()
        self._list_done.set()
        for callback in self.on_reset if restarted else ():
            callback()

    async def _follow(self) -> None:
        request = WatchRequest(
            key=self._root, range_end=prefix_end(self._root), start_revision=self.revision + 1, progress=True
        )
        async with await self._kv.watch(request) as watch:
            self._watch = watch
            try:
                if self._waiting:
                    await watch.request_progress()
                async for batch in watch:
                    if len(batch.events) <= SLICE:
                        self._take(batch)
                    else:
                        await self._take_in_slices(batch)
            finally:
                self._watch = None

    def _take(self, batch: WatchBatch) -> None:
        self._watched_batches += self._apply(batch.events)
        self._advance(batch.revision)

    async def _take_in_slices(self, batch: WatchBatch) -> None:
        """Apply a large batch, such as a restored snapshot, in slices; set `revision` after the last one.

        If it fails, readers wait until everything is listed again.
        """
        self._consistent.clear()
        for events in batches(
            batch.events, lambda event: len(event.kv.value), count=SLICE, max_bytes=SLICE_BYTES
        ):
            self._apply(events)
            await yield_to_loop()
        self._advance(batch.revision)
        self._consistent.set()
        await yield_to_loop()  # waiting readers run before the next batch

    def _apply(self, events: Sequence[Event]) -> bool:
        """Apply events; return whether a watcher has a change to send."""
        now, is_watched = self._clock.monotonic(), False
        for event in events:
            resource_cache = self._resource_cache(self._folder(event.kv.key))
            change = self._change(resource_cache, event, now)
            if change is not None and resource_cache.apply(change):
                is_watched = True
        return is_watched

    def _change(self, resource_cache: ResourceCache, event: Event, now: float) -> Change | None:
        kv = event.kv
        before = resource_cache.get(kv.key)
        if event.kind is EventKind.PUT:
            stored = self._read_stored(resource_cache.prefix, kv)
            if stored is not None:
                kind = ChangeKind.ADDED if before is None else ChangeKind.MODIFIED
                return Change(kind, stored, before, now)
        elif self.unreadable:
            self.unreadable.discard(kv.key)
        if before is None:
            return None
        # Deleted, or overwritten with an unreadable value: lists and watches omit it.
        return Change(ChangeKind.DELETED, before.at(kv.mod_revision), before, now)

    def _find_unchanged(self, folder: bytes, kv: KeyValue) -> StoredObject | None:
        """Return the object of a value that was read before, with its cached parts: most values are the same."""
        resource_cache = self._resource_caches.get(folder)
        cached = None if resource_cache is None else resource_cache.get(kv.key)
        is_same = cached is not None and (cached.revision, cached.value) == (kv.mod_revision, kv.value)
        return cached if is_same else None

    def _read_stored(self, folder: bytes, kv: KeyValue) -> StoredObject | None:
        """Return the object of a value; record a value that cannot be read, and return None."""
        try:
            stored = self.read(folder, kv)
            self._trusted.discard(kv.key, kv.value)
        except Exception as error:  # noqa: BLE001 - a decoder may raise any error
            self.unreadable.add(folder, kv.key, kv.mod_revision, error)
            return None
        if self.unreadable:
            self.unreadable.discard(kv.key)
        return stored

    def read(self, folder: bytes, kv: KeyValue) -> StoredObject:
        """Return the object of a value; raise any error if it cannot be read."""
        text = kv.value if self._trusted.has(kv.key, kv.value) else self._read(kv.value)
        heads = self._kinds.get(folder)
        if heads is not None and not text.startswith(heads):
            raise other_kind(text)
        return StoredObject(kv.key, text, kv.mod_revision)

    def _advance(self, revision: int) -> None:
        self.revision = max(self.revision, revision)
        for awaited_revision, reached in self._waiting:
            if awaited_revision <= self.revision:
                _finish(reached)

    def _resource_cache(self, folder: bytes) -> ResourceCache:
        resource_cache = self._resource_caches.get(folder)
        if resource_cache is None:
            resource_cache = self._resource_caches[folder] = ResourceCache(folder)
            resource_cache.reset((), self.revision)
        return resource_cache

    def _folder(self, key: bytes) -> bytes:
        """Return the folder of a key: `pods/`, or two segments, as in `services/specs/` and `example.com/widgets/`."""
        first = key.find(b"/", len(self._root)) + 1
        if key[:first] in self._claimed:
            return key[:first]
        return key[: key.find(b"/", first) + 1]


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
