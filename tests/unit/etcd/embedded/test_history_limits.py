"""The limits of history: the oldest revisions are compacted when it takes more, and the rest can be read."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.mvcc import UNPACKED_BYTES
from mockube.etcd.embedded.store import HistoryLimits, MemoryStore
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import Delete, Put, Range
from tests.support.event_loop import yield_to_loop


async def filled(store, count, size=100):
    """Write so often, and return the store's core; compaction runs in between."""
    for number in range(count):
        await store.put(Put(key=b"k%d" % (number % 10), value=b"%d" % number + b"x" * size))
        if number % 20 == 0:
            await yield_to_loop(4)
    await yield_to_loop(20)
    return store._core


@pytest.mark.parametrize("limit", [100, 1000])
async def test_number_of_revisions_stays_below_its_limit(limit):
    store = MemoryStore(clock=SteppedClock(), history=HistoryLimits(revisions=limit))
    core = await filled(store, 3000)
    assert limit * 3 // 4 < core.history_revisions <= limit * 5 // 4


async def test_bytes_of_history_stay_below_their_limit_and_newer_revisions_can_be_read():
    limit = 1 << 20
    store = MemoryStore(clock=SteppedClock(), history=HistoryLimits(bytes=limit))
    compacted = []
    store.on_compacted.append(compacted.append)
    core = await filled(store, 5000, size=1000)
    assert limit * 3 // 4 < core.history_bytes <= limit * 5 // 4
    oldest = core.compact_revision
    assert compacted[-1] == oldest
    with pytest.raises(Compacted):
        await store.range(Range(key=b"k0", revision=oldest - 1))
    for revision in (oldest, oldest + 1, core.revision - 1):
        (kv,) = (await store.range(Range(key=b"k1", revision=revision))).kvs
        assert kv.mod_revision <= revision < kv.mod_revision + 10
    await store.close()


async def test_unlimited_history_is_never_compacted():
    store = MemoryStore(clock=SteppedClock())
    assert (await filled(store, 500)).compact_revision == 0


async def test_bytes_of_history_are_the_same_after_a_restart(tmp_path):
    clock = SteppedClock()
    store = await DurableStore.open(tmp_path, clock=clock, disk=Disk(fsync=False))
    core = await filled(store, 600, size=UNPACKED_BYTES // 200)
    clock.advance(60)
    before = core.history_bytes
    await store.close()
    restarted = await DurableStore.open(tmp_path, clock=clock)
    assert restarted._core.history_bytes == before
    await restarted.close()


async def test_bytes_of_history_are_those_of_what_remains():
    """Puts, deletions, compression and compaction add and subtract the same: at the end nothing is left."""
    clock = SteppedClock()
    store = MemoryStore(clock=clock)
    core = await filled(store, 600, size=UNPACKED_BYTES // 200)
    before = core.history_bytes
    clock.advance(60)
    assert core.history_bytes < before / 2, "compressed values take less"
    for number in range(10):
        await store.delete(Delete(key=b"k%d" % number))
    await store.compact(core.revision)
    await yield_to_loop(10)
    assert core._versions.past_bytes == 0
    assert core.history_revisions <= 1
