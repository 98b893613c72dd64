"""Everything the store holds, kept at hand by one watch over it: what lists and watches are served from.

The mirror is a little behind the store. Who must not read the past asks `fresh` first, which waits until the mirror
has seen the revision that the store was at when it was asked. When the watch is lost the mirror resumes it, and if
history was compacted meanwhile, lists again: watches of clients are then ended, for they might have missed something.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from apimachinery.clock import Clock
from apiserver.storage.change import Change, ChangeKind
from apiserver.storage.shelf import Shelf
from apiserver.storage.stored import Stored
from etcd.errors import Compacted, KVError
from etcd.kv import KV, Event, EventKind, KeyValue, Range, Watch, WatchBatch, WatchRequest, prefix_end

LOG = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
PAGE = 10_000
"""Keys listed at a time."""


class Mirror:
    """The objects below one prefix of a store."""

    def __init__(self, kv: KV, root: bytes, *, clock: Clock, read: Callable[[bytes], bytes]) -> None:
        self._kv = kv
        self._root = root
        self._clock = clock
        self._read = read
        """Makes canonical text of a value, whoever wrote it."""
        self._shelves: dict[bytes, Shelf] = {}
        self._claimed: set[bytes] = set()
        self.revision = 0
        """Every change up to here has been taken in."""
        self._watch: Watch | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._listed = asyncio.Event()
        self.on_reset: list[Callable[[], None]] = []
        self.passed_over: dict[bytes, int] = {}
        """Keys that hold no object, at which revision: shelves show nothing of it, or what they held before."""

    def shelf(self, prefix: bytes) -> Shelf:
        """The shelf of a folder, such as /registry/pods/. Folders of one segment must be asked for before `run`."""
        shelf = self._shelves.get(prefix)
        if shelf is None:
            shelf = self._shelves[prefix] = Shelf(prefix)
            shelf.reset((), self.revision)
        self._claimed.add(prefix)
        return shelf

    def shelves(self) -> Sequence[Shelf]:
        return list(self._shelves.values())

    def claimed(self) -> Sequence[Shelf]:
        """The shelves that were asked for: each has its folder for itself."""
        return [self._shelves[prefix] for prefix in self._claimed]

    async def run(self) -> None:
        """Keep the mirror true until cancelled."""
        while True:
            try:
                await self._list()
                await self._follow()
            except Compacted:
                LOG.warning("history was compacted beyond what was seen: listing anew")
            except KVError as error:
                LOG.warning("the store does not answer, trying again: %s", error)
                await self._clock.sleep(RETRY_SECONDS)

    async def rebuild(self) -> None:
        """List everything anew, as what is shown is not true; until then it is still shown."""
        if self._watch is not None:
            await self._watch.close()

    async def wait_listed(self) -> None:
        await self._listed.wait()

    async def fresh(self) -> int:
        """Wait until the mirror shows everything done before this call; answers with a revision that it shows."""
        head = (await self._kv.status()).revision
        if head > self.revision:
            await self.reached(head)
        return self.revision

    async def reached(self, revision: int, *, within: float | None = None) -> bool:
        """Wait until the mirror has seen a revision, at most so many seconds; answers whether it has."""
        if revision <= self.revision:
            return True
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = None if within is None else self._clock.call_later(within, lambda: _finish(reached))
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
        found: list[Stored] = []
        start, end, revision = self._root, prefix_end(self._root), 0
        while True:
            page = await self._kv.range(Range(key=start, range_end=end, limit=PAGE, revision=revision))
            revision = revision or page.revision
            found += [stored for kv in page.kvs if (stored := self._stored(kv)) is not None]
            if not page.more:
                break
            start = page.kvs[-1].key + b"\x00"
        self._fill(found, revision)

    def _fill(self, found: Sequence[Stored], revision: int) -> None:
        by_folder: dict[bytes, list[Stored]] = {folder: [] for folder in self._shelves}
        for stored in found:
            by_folder.setdefault(self._folder(stored.key), []).append(stored)
        for folder, objects in by_folder.items():
            shelf = self._shelves.setdefault(folder, Shelf(folder))
            shelf.reset(objects, revision)
        restarted = self._listed.is_set()
        self._advance(revision)
        self._listed.set()
        if restarted:
            for callback in self.on_reset:
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
                    self._take(batch)
            finally:
                self._watch = None

    def _take(self, batch: WatchBatch) -> None:
        now = self._clock.monotonic()
        for event in batch.events:
            shelf = self._shelf_of(event.kv.key)
            change = self._change(shelf, event, now)
            if change is not None:
                shelf.apply(change)
        self._advance(batch.revision)

    def _change(self, shelf: Shelf, event: Event, now: float) -> Change | None:
        kv = event.kv
        before = shelf.get(kv.key)
        if event.kind is EventKind.PUT:
            stored = self._stored(kv)
            if stored is None:
                return None
            kind = ChangeKind.ADDED if before is None else ChangeKind.MODIFIED
            return Change(kind, stored, before, now)
        self.passed_over.pop(kv.key, None)
        if before is None:
            return None
        return Change(ChangeKind.DELETED, before.at(kv.mod_revision), before, now)

    def _stored(self, kv: KeyValue) -> Stored | None:
        """The object in a value; None, and a line in the log, for a value that holds none: it must not stop the rest."""
        try:
            return Stored(kv.key, self._read(kv.value), kv.mod_revision)
        except ValueError:
            LOG.exception("passed over: %s", kv.key.decode(errors="replace"))
            self.passed_over[kv.key] = kv.mod_revision
            return None

    def _advance(self, revision: int) -> None:
        self.revision = max(self.revision, revision)
        if self._waiting:
            for wanted, reached in self._waiting:
                if wanted <= self.revision:
                    _finish(reached)

    def _shelf_of(self, key: bytes) -> Shelf:
        folder = self._folder(key)
        shelf = self._shelves.get(folder)
        if shelf is None:
            shelf = self._shelves[folder] = Shelf(folder)
            shelf.reset((), self.revision)
        return shelf

    def _folder(self, key: bytes) -> bytes:
        """`pods/`, or two segments where one is no folder of ours: `services/specs/`, `example.com/widgets/`."""
        first = key.find(b"/", len(self._root)) + 1
        if key[:first] in self._claimed:
            return key[:first]
        return key[: key.find(b"/", first) + 1]


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
