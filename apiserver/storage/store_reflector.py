"""List a store and follow its watch, so that the resource caches have what it has.

A lost watch is resumed. If history was compacted meanwhile, everything is listed again, and the watches of clients end,
because they may have missed events.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mockube.apiserver.event_loop import batches
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.errors import Compacted, KVError
from mockube.etcd.kv import KV, Event, EventKind, KeyValue, Range, Watch, WatchBatch, WatchRequest, prefix_end

from .folders import Folders
from .progress import CacheProgress
from .recent_changes import Change, ChangeKind
from .resource_cache import ResourceCache
from .stored_object import StoredObject
from .value_reader import ValueReader

LOG: Final = logging.getLogger(__name__)
RETRY_SECONDS: Final = 0.5
PAGE: Final = 10_000
"""Keys listed at a time."""
SLICE: Final = 500
SLICE_BYTES: Final = 512 * 1024
"""The maximum of changes or listed keys, and of their bytes, that are processed without yielding to the event loop."""


class StoreReflector:
    def __init__(
        self,
        kv: KV,
        folders: Folders,
        values: ValueReader,
        progress: CacheProgress,
        on_reset: Sequence[Callable[[], None]],
        *,
        clock: Clock,
    ) -> None:
        """`on_reset` is called after everything was listed again."""
        self._kv = kv
        self._folders = folders
        self._values = values
        self._progress = progress
        self._on_reset = on_reset
        self._clock = clock
        self._watch: Watch | None = None
        self.watched_batches = 0
        """Counts the batches with a change that a watcher had to send."""

    async def run(self) -> None:
        """Keep the resource caches up to date until cancelled."""
        while True:
            try:
                await self.list_all()
                await self._follow()
            except Compacted:
                LOG.warning("the watched revision was compacted: listing again")
            except KVError as error:
                LOG.warning("the store does not respond, retrying: %s", error)
                await self._clock.real.sleep(RETRY_SECONDS)

    async def rebuild(self) -> None:
        """List everything again, because the caches are wrong; until then they are still used."""
        if self._watch is not None:
            await self._watch.close()

    async def request_progress(self) -> None:
        """Let the store send its revision, even if it has no changes."""
        if self._watch is not None:
            await self._watch.request_progress()

    async def take_pending(self) -> None:
        """Apply the batch that the watch already has, without its task."""
        watch = self._watch
        batch = watch.take_pending(SLICE) if watch is not None and self._progress.is_consistent else None
        try:
            if batch is not None:
                self._take(batch)
        except BaseException:
            await self.rebuild()  # the batch is lost
            raise

    async def list_all(self, page: int = PAGE) -> None:
        """Read everything at one revision, so many keys at a time."""
        objects_by_folder: dict[bytes, list[StoredObject]] = {}
        self._values.unreadable.clear()
        start, end, revision = self._folders.root, prefix_end(self._folders.root), 0
        while True:
            answer = await self._kv.range(Range(key=start, range_end=end, limit=page, revision=revision))
            revision = revision or answer.revision
            for kvs in batches(answer.kvs, lambda kv: len(kv.value), count=SLICE, max_bytes=SLICE_BYTES):
                for kv in kvs:
                    folder = self._folders.of(kv.key)
                    stored = self._find_unchanged(folder, kv) or self._values.receive(folder, kv)
                    if stored is not None:
                        objects_by_folder.setdefault(folder, []).append(stored)
                await yield_to_loop()
            if not answer.more:
                break
            start = answer.kvs[-1].key + b"\x00"
        self._fill(objects_by_folder, revision)

    def _find_unchanged(self, folder: bytes, kv: KeyValue) -> StoredObject | None:
        """Return the object of a value that was read before, with its cached parts: most values are the same."""
        resource_cache = self._folders.find(folder)
        cached = None if resource_cache is None else resource_cache.get(kv.key)
        is_same = cached is not None and (cached.revision, cached.value) == (kv.mod_revision, kv.value)
        return cached if is_same else None

    def _fill(self, objects_by_folder: Mapping[bytes, Sequence[StoredObject]], revision: int) -> None:
        is_whole = not objects_by_folder and not self._values.unreadable
        for folder in {*self._folders, *objects_by_folder}:
            objects = objects_by_folder.get(folder, ())
            self._folders.cache(folder).reset(objects, revision, is_whole=is_whole)
        is_restart = self._progress.is_listed
        self._progress.advance(revision)
        self._progress.note_listed()
        for callback in self._on_reset if is_restart else ():
            callback()

    async def _follow(self) -> None:
        root = self._folders.root
        request = WatchRequest(
            key=root, range_end=prefix_end(root), start_revision=self._progress.revision + 1, progress=True
        )
        async with await self._kv.watch(request) as watch:
            self._watch = watch
            try:
                if self._progress.is_awaited:
                    await watch.request_progress()
                async for batch in watch:
                    if len(batch.events) <= SLICE:
                        self._take(batch)
                    else:
                        await self._take_in_slices(batch)
            finally:
                self._watch = None

    def _take(self, batch: WatchBatch) -> None:
        self.watched_batches += self._apply(batch.events)
        self._progress.advance(batch.revision)

    async def _take_in_slices(self, batch: WatchBatch) -> None:
        """Apply a large batch, such as a restored snapshot, in slices; advance after the last one.

        If it fails, readers wait until everything is listed again.
        """
        self._progress.begin_part()
        for events in batches(
            batch.events, lambda event: len(event.kv.value), count=SLICE, max_bytes=SLICE_BYTES
        ):
            self._apply(events)
            await yield_to_loop()
        self._progress.advance(batch.revision)
        await yield_to_loop()  # waiting readers run before the next batch

    def _apply(self, events: Sequence[Event]) -> bool:
        """Apply events; return whether a watcher has a change to send."""
        folders, now, is_watched = self._folders, self._clock.monotonic(), False
        for event in events:
            resource_cache = folders.cache(folders.of(event.kv.key))
            change = self._change(resource_cache, event, now)
            if change is not None and resource_cache.apply(change):
                is_watched = True
        return is_watched

    def _change(self, resource_cache: ResourceCache, event: Event, now: float) -> Change | None:
        kv = event.kv
        before = resource_cache.get(kv.key)
        if event.kind is EventKind.PUT:
            stored = self._values.receive(resource_cache.prefix, kv)
            if stored is not None:
                kind = ChangeKind.ADDED if before is None else ChangeKind.MODIFIED
                return Change(kind, stored, before, now)
        elif self._values.unreadable:
            self._values.unreadable.discard(kv.key)
        if before is None:
            return None
        # Deleted, or overwritten with an unreadable value: lists and watches omit it.
        return Change(ChangeKind.DELETED, before.at(kv.mod_revision), before, now)
