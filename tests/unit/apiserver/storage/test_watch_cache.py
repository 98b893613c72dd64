"""The watch cache applies large batches in slices, and no reader sees a part of a batch."""

import asyncio
import contextlib
import gc
import itertools

import msgspec
import pytest

from mockube.apimachinery.status import Expired
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.registry.selection import SELECT_ALL, Selection
from mockube.apiserver.registry.watch_stream import (
    ADDED,
    BACKLOG,
    BACKLOG_BYTES,
    UNCOUNTED_EVENTS,
    ClientWatch,
    WatchEvent,
)
from mockube.apiserver.storage import recent_changes
from mockube.apiserver.storage.cache_lag import LAG_SECONDS
from mockube.apiserver.storage.recent_changes import HISTORY_SECONDS, TooOldResourceVersion
from mockube.apiserver.storage.store_reflector import SLICE
from mockube.apiserver.storage.stored_object import MAX_TRUSTED_BYTES, TrustedValues, read_value
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.mvcc import Mvcc
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Event, Txn, WatchBatch
from tests.support.event_loop import until, yield_to_loop
from tests.support.stores.watch_caches import FOLDER, mirroring, put

MANY = 3 * SLICE


@pytest.fixture
async def store():
    store = MemoryStore(clock=SteppedClock())
    yield store
    await store.close()


def rewrite(store, count):
    return asyncio.create_task(
        store.rewrite(b"/registry/", [put(number) for number in range(count)], is_excluded=lambda _: False)
    )


async def test_readers_never_receive_part_of_a_batch(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache, was, seen, parts = watch_cache.resource_cache(FOLDER), watch_cache.revision, [], set()
        rewriting = rewrite(store, MANY)
        while watch_cache.revision == was:
            parts.add(len(resource_cache))
            await watch_cache.progress.wait_consistent()
            seen.append((watch_cache.revision, len(resource_cache)))
            await yield_to_loop()
        assert set(seen) == {(was, 0), (await rewriting, MANY)}
        rewriting = rewrite(store, 0)
        while len(resource_cache):
            parts.add(len(resource_cache))
            await yield_to_loop()
        await rewriting
    assert parts - {0, MANY}


async def test_slice_is_limited_in_bytes(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache, sizes = watch_cache.resource_cache(FOLDER), set()
        large = [put(number, size=100_000) for number in range(SLICE + 1)]
        task = asyncio.create_task(store.rewrite(b"/registry/", large, is_excluded=lambda _: False))
        while len(resource_cache) <= SLICE:
            sizes.add(len(resource_cache))
            await yield_to_loop()
        await task
    ordered = sorted(sizes)
    assert max(after - before for before, after in itertools.pairwise(ordered)) <= 6


async def test_list_is_made_in_slices(store):
    for number in range(MANY):
        await store.put(put(number))
    watch_cache = WatchCache(store, b"/registry/", clock=SteppedClock(), read=read_value)
    listing, others = asyncio.create_task(watch_cache.run()), 0
    while not watch_cache.revision:
        others += 1
        await yield_to_loop()
    assert others > MANY // SLICE
    listing.cancel()
    await asyncio.wait([listing])


async def test_readers_wait_for_relist_after_interrupted_batch(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        rewriting = rewrite(store, MANY)
        await until(lambda: not watch_cache.progress.is_consistent)
    await rewriting
    assert 0 < len(watch_cache.resource_cache(FOLDER)) < MANY
    reader = asyncio.create_task(watch_cache.progress.wait_consistent())
    await yield_to_loop()
    assert not reader.done()
    running = asyncio.create_task(watch_cache.run())
    await reader
    assert len(watch_cache.resource_cache(FOLDER)) == MANY
    running.cancel()
    await asyncio.wait([running])


async def test_readers_run_between_large_batches(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        first = rewrite(store, MANY)
        await until(lambda: not watch_cache.progress.is_consistent)
        reader, second = asyncio.create_task(watch_cache.progress.wait_consistent()), rewrite(store, 0)
        revision = await first
        await reader
        assert watch_cache.revision == revision
        await second


@pytest.mark.thorough
@pytest.mark.parametrize("has_some", [False, True], ids=["none", "some"])
async def test_slow_watcher_within_a_revision_must_relist(store, has_some):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache = watch_cache.resource_cache(FOLDER)
        stream = ClientWatch(FOLDER, resource_cache, SELECT_ALL)
        resource_cache.watchers.add(stream)
        stream.resume(watch_cache.revision)
        rewriting = rewrite(store, 2 * BACKLOG)
        if has_some:
            revision = (await stream.take())[-1].change.revision
            stream.bookmark(revision - 1)  # this revision would be older than the delivered event
        revision = await rewriting
        await watch_cache.wait_reached(revision)
        assert (stream.overflowed, not await stream.take()) == (True, True)
        assert (stream.error is not None) is has_some


@pytest.mark.thorough
@pytest.mark.parametrize("resumes", [False, True], ids=["initial objects", "changes to resume from"])
async def test_events_from_before_a_watch_are_made_when_they_are_read(store, resumes):
    """A client that reads nothing costs a list of references."""
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache, first = watch_cache.resource_cache(FOLDER), watch_cache.revision
        for number in range(2 * QUICK_SLICE + 3):
            written = await store.put(put(number))
        await watch_cache.wait_reached(written.revision)
        stream = ClientWatch(FOLDER, resource_cache, SELECT_ALL)
        resource_cache.watchers.add(stream)
        if resumes:
            stream.resume(first)
        else:
            await stream.begin(resource_cache.select(FOLDER), watch_cache.revision, bookmark=True)
        await store.put(put(1, size=100))
        await watch_cache.deliver()
        gc.collect()
        assert sum(type(each) is WatchEvent for each in gc.get_objects()) == 1 + (not resumes)
        taken = [await stream.take() for _ in range(4)]
        assert [len(events) for events in taken] == [QUICK_SLICE, QUICK_SLICE, 3 + (not resumes), 1]
        last = taken[-1][0].stored.value
        assert [event.stored.key for events in taken for event in events if event.stored] == [
            *sorted(put(number).key for number in range(2 * QUICK_SLICE + 3)),
            put(1).key,
        ]
        assert len(last) > len(put(1).value)


@pytest.mark.parametrize("resumes", [False, True], ids=["initial objects", "changes to resume from"])
async def test_watch_that_lags_expires_when_it_is_released(store, resumes):
    """A watch of a version that is older than the history stands still as long as a fault lets it lag."""
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache, first = watch_cache.resource_cache(FOLDER), watch_cache.revision
        written = await store.put(put(0))
        await watch_cache.wait_reached(written.revision)
        resource_cache.history.reset(written.revision)
        stream = ClientWatch(FOLDER, resource_cache, SELECT_ALL)
        resource_cache.watchers.add(stream)
        if resumes:
            stream.resume(first)
        else:
            await stream.begin(resource_cache.select(FOLDER), first, bookmark=False)
            stream.follow_from(first)
        release = stream.lag()
        if not resumes:
            assert [event.kind for event in await stream.take()] == [ADDED]
        reader = asyncio.create_task(stream.take())
        written = await store.put(put(1))
        await watch_cache.wait_reached(written.revision)
        stream.bookmark(written.revision)
        await yield_to_loop()
        assert (reader.done(), stream.error) == (False, None)
        release()
        assert not await reader
        assert isinstance(stream.error, Expired)


async def test_changes_that_do_not_match_are_skipped_in_slices(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache, first = watch_cache.resource_cache(FOLDER), watch_cache.revision
        for number in range(3 * QUICK_SLICE):
            written = await store.put(put(number))
        await watch_cache.wait_reached(written.revision)
        last = put(3 * QUICK_SLICE - 1).key
        stream = ClientWatch(FOLDER, resource_cache, Selection(matches=lambda stored: stored.key == last))
        stream.resume(first)
        reader = asyncio.create_task(stream.take())
        await yield_to_loop()
        assert not reader.done()
        assert [event.stored.key for event in await reader] == [last]


@pytest.mark.thorough
@pytest.mark.parametrize(("part", "is_cut_off"), [(0.9, False), (1.5, True)], ids=["below", "above"])
async def test_slow_watcher_of_large_objects_is_cut_off(store, part, is_cut_off):
    count = 4 * UNCOUNTED_EVENTS
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache = watch_cache.resource_cache(FOLDER)
        stream = ClientWatch(FOLDER, resource_cache, SELECT_ALL)
        resource_cache.watchers.add(stream)
        stream.resume(watch_cache.revision)
        for number in range(count):
            written = await store.put(put(number, int(part * BACKLOG_BYTES / count)))
        await watch_cache.wait_reached(written.revision)
        assert stream.overflowed is is_cut_off


async def test_bookmark_is_not_older_than_delivered_event(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache = watch_cache.resource_cache(FOLDER)
        stream = ClientWatch(FOLDER, resource_cache, SELECT_ALL)
        resource_cache.watchers.add(stream)
        stream.resume(watch_cache.revision)
        rewriting = rewrite(store, MANY)
        await until(lambda: not watch_cache.progress.is_consistent)
        stream.bookmark(watch_cache.revision)
        revision = await rewriting
        await watch_cache.wait_reached(revision)
        stream.bookmark(watch_cache.revision)
        events = await stream.take()
    assert [event.version for event in events if event.change is None] == [revision]
    assert events[-1].change is None


class CountingReader:
    """`read_value` with a count of its calls."""

    def __init__(self):
        self.count = 0

    def __call__(self, value):
        self.count += 1
        return read_value(value)


class CopyingStore:
    """A store that returns other objects than were written, as etcd does."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def watch(self, request):
        return CopyingWatch(await self._store.watch(request))


class CopyingWatch:
    def __init__(self, watch):
        self._watch = watch

    async def __aenter__(self):
        await self._watch.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self._watch.__aexit__(*error)

    def __getattr__(self, name):
        return getattr(self._watch, name)

    async def __aiter__(self):
        async for batch in self._watch:
            events = [
                msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=Event) for event in batch.events
            ]
            yield WatchBatch(revision=batch.revision, events=events)


@pytest.mark.parametrize("wrap", [lambda store: store, CopyingStore], ids=["embedded", "foreign"])
async def test_own_writes_are_not_decoded_again(store, wrap):
    reads = CountingReader()
    async with mirroring(wrap(store), SteppedClock(), reads) as watch_cache:
        own = put(1)
        watch_cache.values.trust(own.key, own.value)
        result = await store.put(own)
        await until(lambda: watch_cache.revision == result.revision)
        assert reads.count == 0
        other = put(1, size=1)
        watch_cache.values.trust(own.key, own.value)  # of a write that did not take place
        for expected in (1, 2):
            result = await store.put(other)
            await until(lambda result=result: watch_cache.revision == result.revision)
            assert reads.count == expected
        assert watch_cache.resource_cache(FOLDER).get(own.key).value == other.value


@pytest.mark.thorough
async def test_memory_for_unconfirmed_writes_is_bounded(store):
    reads = CountingReader()
    async with mirroring(store, SteppedClock(), reads) as watch_cache:
        own, half = put(1), put(2, size=MAX_TRUSTED_BYTES // 2)
        for value in (own, half, half):  # an equal value written again uses no more memory
            watch_cache.values.trust(value.key, value.value)
        result = await store.put(own)
        await until(lambda: watch_cache.revision == result.revision)
        assert reads.count == 0
        watch_cache.values.trust(own.key, own.value)
        third = put(3, size=MAX_TRUSTED_BYTES // 2)
        watch_cache.values.trust(third.key, third.value)
        result = await store.put(own)
        await until(lambda: watch_cache.revision == result.revision)
        assert reads.count == 1


def test_several_own_writes_of_object_are_recognised():
    trusted = TrustedValues()
    for value in (b"first", b"refused", b"second"):
        trusted.add(b"key", value)
    trusted.discard(b"key", b"first")
    assert not trusted.has(b"key", b"first")
    assert trusted.has(b"key", b"second")
    trusted.discard(b"key", b"second")
    assert not any(trusted.has(b"key", value) for value in (b"first", b"refused", b"second"))


async def test_relist_decodes_changed_values_only(store):
    for number in range(MANY):
        await store.put(put(number))
    reads = CountingReader()
    async with mirroring(store, SteppedClock(), reads) as watch_cache:
        assert reads.count == MANY
        before, last = watch_cache.resource_cache(FOLDER).get(put(0).key), watch_cache.revision
        resets = []
        watch_cache.on_reset.append(lambda: resets.append(watch_cache.revision))
        await watch_cache.rebuild()
        await store.put(put(1, size=1))
        await until(lambda: resets)
        assert watch_cache.revision == last + 1
        assert reads.count == MANY + 1
        assert watch_cache.resource_cache(FOLDER).get(put(0).key) is before


async def test_consistent_read_catches_up_without_waiting_for_watch(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache = watch_cache.resource_cache(FOLDER)
        for number in range(3):
            await store.put(put(number))
        reading = watch_cache.fresh()
        with pytest.raises(StopIteration) as ended:
            reading.send(None)  # it returns without a turn of the event loop
        assert ended.value.value == watch_cache.revision
        assert len(resource_cache) == 3
        await store.put(put(3))
        await until(lambda: len(resource_cache) == 4)


async def test_failed_catch_up_leads_to_relist(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache = watch_cache.resource_cache(FOLDER)
        await store.put(put(0))
        resource_cache.apply, applying = raise_error, resource_cache.apply
        with pytest.raises(ValueError, match="broken"):
            await watch_cache.fresh()
        resource_cache.apply = applying
        await until(lambda: len(resource_cache) == 1)


def raise_error(_change):
    raise ValueError("broken")


async def test_large_difference_is_applied_by_watch(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        for first in range(0, SLICE + 1, 100):
            await store.txn(Txn(then=[put(number) for number in range(first, first + 100)]))
        reading = watch_cache.fresh()
        assert asyncio.isfuture(reading.send(None))
        reading.close()


@contextlib.asynccontextmanager
async def cache_without_old_version(store):
    """A watch cache of objects whose version v1 is not expected any more."""
    for number in range(MANY):
        await store.put(put(number))
    watch_cache = WatchCache(store, b"/registry/", clock=SteppedClock(), read=read_value)
    watch_cache.expect_kind(FOLDER, "ConfigMap", ("v2", "v1"))
    resource_cache = watch_cache.resource_cache(FOLDER)
    running = asyncio.create_task(watch_cache.run())
    await watch_cache.progress.wait_listed()
    watch_cache.expect_kind(FOLDER, "ConfigMap", ("v2",))
    assert len(resource_cache) == MANY
    try:
        yield watch_cache, resource_cache
    finally:
        running.cancel()
        await asyncio.wait([running])


async def test_objects_of_lost_version_are_removed_in_slices(store):
    async with cache_without_old_version(store) as (watch_cache, resource_cache):
        reading, sizes = asyncio.create_task(watch_cache.rebuild_if_outdated()), [MANY]
        while not reading.done():
            await yield_to_loop()
            sizes.append(len(resource_cache))
        await reading
    assert sizes[-1] == 0
    assert max(before - after for before, after in itertools.pairwise(sizes)) <= 20


async def test_history_of_a_resource_that_changes_no_more_gets_shorter(store, monkeypatch):
    monkeypatch.setattr(recent_changes, "IDLE_HISTORY", 10)
    clock = SteppedClock()
    async with mirroring(store, clock) as watch_cache:
        resource_cache, was = watch_cache.resource_cache(FOLDER), watch_cache.revision
        await rewrite(store, 30)
        await until(lambda: len(resource_cache) == 30)
        task = asyncio.create_task(watch_cache.lag.run())
        for _ in range(int(HISTORY_SECONDS / LAG_SECONDS)):
            assert len(resource_cache.history.since(was, FOLDER)) == 30
            await yield_to_loop(5)
            clock.advance(LAG_SECONDS)
        await yield_to_loop(5)
        clock.advance(LAG_SECONDS)
        await yield_to_loop(5)
        with pytest.raises(TooOldResourceVersion):
            resource_cache.history.since(was, FOLDER)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("is_new", [True, False])
async def test_history_of_a_new_store_begins_at_the_first_revision(is_new):
    core = Mvcc()
    core.load(1000, (), ())
    store = MemoryStore(clock=SteppedClock(), core=core)
    if not is_new:
        await store.txn(Txn(then=(put(1),)))
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache = watch_cache.resource_cache(FOLDER)
        await store.txn(Txn(then=(put(2),)))
        await watch_cache.fresh()
        if is_new:
            assert len(resource_cache.history.since(1, FOLDER)) == 1
        else:
            with pytest.raises(TooOldResourceVersion):
                resource_cache.history.since(1, FOLDER)
        with pytest.raises(TooOldResourceVersion):  # of an earlier store
            resource_cache.history.since(2, FOLDER)
    await store.close()
