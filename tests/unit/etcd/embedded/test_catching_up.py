"""Watches that begin in the past: what they read, and how often they let other tasks run."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.mvcc import UNPACKED_BYTES, Mvcc
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.embedded.versions import PackedKeyValue
from mockube.etcd.embedded.watch import CATCH_UP_EVENTS
from mockube.etcd.kv import Put, Txn, WatchRequest
from tests.support.event_loop import yield_to_loop

WRITES = 4 * CATCH_UP_EVENTS


@pytest.fixture
async def store():
    store = MemoryStore(clock=SteppedClock())
    for number in range(WRITES):
        await store.put(Put(key=b"/a/%d" % (number % 10), value=b"%d" % number))
        await store.put(Put(key=b"/b", value=b"%d" % number))
    yield store
    await store.close()


async def past_of(store, key, range_end=None):
    """The values of the past events of keys, and the turns of another task between the batches."""
    turns = []

    async def count():
        while True:
            turns.append(1)
            await yield_to_loop()

    counting = asyncio.create_task(count())
    newest, values, seen = (await store.status()).revision, [], []
    async with await store.watch(
        WatchRequest(key=key, range_end=range_end, start_revision=2, progress=True)
    ) as watch:
        await watch.request_progress()
        async for batch in watch:
            values += [int(event.kv.value) for event in batch.events]
            assert len(batch.events) <= CATCH_UP_EVENTS
            seen.append(len(turns))
            if batch.revision >= newest:
                break
    counting.cancel()
    return values, seen


async def test_watch_lets_other_tasks_run_between_its_steps(store):
    values, turns = await past_of(store, b"/b")
    assert values == [*range(WRITES)]
    assert len({*turns}) >= WRITES // CATCH_UP_EVENTS


async def test_watch_of_a_prefix_has_all_its_events_in_order(store):
    values, _ = await past_of(store, b"/a/", b"/a0")
    assert values == [*range(WRITES)]


def test_values_of_other_keys_are_not_decompressed():
    core, value = Mvcc(), b"x" * 100_000
    for number in range(2 * UNPACKED_BYTES // len(value)):
        for key in (b"/a", b"/b"):
            core.txn(Txn(then=(Put(key=key, value=value + b"%d" % number),)))
    while core.has_unpacked:
        core.pack(1 << 30)
    assert any(isinstance(event.kv, PackedKeyValue) for events in core._log for event in events)
    read = []
    for event in core.selected_events(2, core.revision, key=b"/a", range_end=None, limit=10**6)[0]:
        assert not isinstance(event.kv, PackedKeyValue)
        read.append(event.kv.value)
    assert read == [value + b"%d" % number for number in range(len(read))]
    assert len(read) == core.revision // 2
    selected, last = core.selected_events(2, core.revision, key=b"/a", range_end=b"/c", limit=3)
    assert (len(selected), last) == (3, 4)
