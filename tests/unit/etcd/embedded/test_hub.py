"""The watch hub: shared batches, bounded buffers, and delivery of past events."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import BURST, MemoryStore
from mockube.etcd.embedded.watch import CATCH_UP
from mockube.etcd.errors import Closed, Compacted, WatcherTooSlow
from mockube.etcd.kv import Put, WatchRequest, prefix_end
from tests.support.event_loop import yield_to_loop

PODS = WatchRequest(key=b"/pods/", range_end=prefix_end(b"/pods/"))


async def put_many(store: MemoryStore, count: int, prefix: bytes = b"/pods/") -> None:
    for number in range(count):
        await store.put(Put(key=b"%s%d" % (prefix, number), value=b"v"))


async def test_watches_of_one_interval_share_batches():
    store = MemoryStore(clock=SteppedClock())
    first, second = await store.watch(PODS), await store.watch(PODS)
    await put_many(store, 3)
    assert await anext(first) is await anext(second)
    await store.close()


async def test_slow_watch_is_cancelled_and_others_continue():
    store = MemoryStore(clock=SteppedClock(), watch_backlog=100)
    slow, quick = await store.watch(PODS), await store.watch(PODS)
    seen = 0
    for _ in range(50):
        await put_many(store, 10)
        seen += len((await anext(quick)).events)
    assert seen == 500
    with pytest.raises(WatcherTooSlow):
        await anext(slow)
    await put_many(store, 1)
    assert len((await anext(quick)).events) == 1
    await store.close()


async def test_events_read_by_every_watch_are_dropped():
    store = MemoryStore(clock=SteppedClock())
    watch = await store.watch(PODS)
    for _ in range(100):
        await put_many(store, 10)
        await anext(watch)
    (channel,) = store._hub._interest.of(b"/pods/0")
    assert len(channel.log) < 300
    await store.close()


async def test_long_past_is_read_in_pieces_without_gap():
    store = MemoryStore(clock=SteppedClock())
    await put_many(store, 2 * CATCH_UP, prefix=b"/other/")
    await put_many(store, CATCH_UP)
    watch = await store.watch(WatchRequest(key=PODS.key, range_end=PODS.range_end, start_revision=2))
    revisions: list[int] = []
    while len(revisions) < CATCH_UP:
        revisions += [event.kv.mod_revision for event in (await anext(watch)).events]
    await put_many(store, 5)
    revisions += [event.kv.mod_revision for event in (await anext(watch)).events]
    assert revisions == list(range(2 * CATCH_UP + 2, 3 * CATCH_UP + 7))
    await store.close()


async def test_watch_from_future_revision_gets_no_batch_before_it():
    store = MemoryStore(clock=SteppedClock())
    watch = await store.watch(WatchRequest(key=PODS.key, range_end=PODS.range_end, start_revision=4))
    for _ in range(2):
        await put_many(store, 1)
        assert watch.take_pending(100) is None
    await put_many(store, 1)
    batch = watch.take_pending(100)
    assert (batch.revision, [event.kv.mod_revision for event in batch.events]) == (4, [4])
    await store.close()


async def test_compaction_during_past_events_ends_watch():
    store = MemoryStore(clock=SteppedClock())
    await put_many(store, 2 * CATCH_UP)
    watch = await store.watch(WatchRequest(key=PODS.key, range_end=PODS.range_end, start_revision=2))
    await anext(watch)
    await store.compact(2 * CATCH_UP)
    with pytest.raises(Compacted) as caught:
        await anext(watch)
    assert caught.value.compact_revision == 2 * CATCH_UP
    await store.close()


async def test_closed_watch_is_removed():
    store = MemoryStore(clock=SteppedClock())
    watch = await store.watch(PODS)
    reader = asyncio.create_task(anext(watch, None))
    await watch.close()
    assert await reader is None
    assert not store._hub._interest
    await store.close()


async def test_continuous_writer_does_not_starve_readers():
    store = MemoryStore(clock=SteppedClock(), watch_backlog=2000)
    watch = await store.watch(PODS)

    async def read() -> int:
        seen = 0
        while seen < 10_000:
            seen += len((await anext(watch)).events)
        return seen

    reader = asyncio.create_task(read())
    await put_many(store, 10_000)
    assert await reader == 10_000
    await store.close()


async def test_cancelled_writer_does_not_cancel_others_that_wait_for_readers():
    store = MemoryStore(clock=SteppedClock())
    writers = [asyncio.create_task(put_many(store, 1)) for _ in range(BURST + 1)]
    await yield_to_loop()
    cancelled, other = [writer for writer in writers if not writer.done()]
    cancelled.cancel()
    await other
    assert cancelled.cancelled()
    await store.close()


async def test_writers_that_wait_for_readers_return_when_store_is_closed():
    store = MemoryStore(clock=SteppedClock())
    watch = await store.watch(PODS)
    writers = [asyncio.create_task(put_many(store, 1)) for _ in range(BURST + 1)]
    await yield_to_loop()
    assert sum(not writer.done() for writer in writers) == 2
    await store.close()
    await yield_to_loop(3)
    assert all(writer.done() for writer in writers)
    with pytest.raises(Closed):
        await anext(watch)
