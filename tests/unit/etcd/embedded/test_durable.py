"""The durable store: visibility of writes before and after the fsync, and state after a restart."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.lock import NAME, DirectoryLock
from mockube.etcd.errors import (
    Closed,
    Compacted,
    FutureRevision,
    Locked,
)
from mockube.etcd.kv import Delete, Range, Txn, WatchRequest
from tests.support.event_loop import next_item, yield_to_loop
from tests.support.stores.disks import HeldDisk
from tests.support.stores.durable import ABSENT, put, start_on_held_disk, state

# --- before and after the fsync


async def test_write_is_not_visible_before_fsync(open_durable):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    await store.put(put(b"a", b"old"))
    watch = await store.watch(WatchRequest(key=b"a"))
    heard = asyncio.create_task(next_item(watch))
    works = {
        "put": store.put(put(b"a", b"new")),
        "a transaction that fails for it": store.txn(Txn(compare=(ABSENT,))),
        "a read in a transaction": store.txn(Txn(then=(Range(key=b"a"),))),
        "a refusal that shows it": store.txn(Txn(then=(Range(key=b"a", revision=9),))),
        "grant": store.grant(60, 7),
        "a lease's keys": store.time_to_live(7, keys=True),
        "leases": store.leases(),
    }
    tasks = await start_on_held_disk(disk, *works.values())
    assert [task.done() for task in (*tasks, heard)] == [False] * (len(tasks) + 1)
    assert await state(store) == (2, {b"a": b"old"})
    assert (await store.status()).revision == 2
    with pytest.raises(FutureRevision):
        await store.range(Range(key=b"a", revision=3))

    disk.release()
    answers = dict(zip(works, await asyncio.gather(*tasks, return_exceptions=True), strict=True))
    assert answers["put"].revision == 3
    assert answers["a transaction that fails for it"].revision == 3
    assert answers["a read in a transaction"].results[0].kvs[0].value == b"new"
    assert isinstance(answers["a refusal that shows it"], FutureRevision)
    assert answers["leases"] == [7]
    assert (await heard).revision == 3
    assert await state(store) == (3, {b"a": b"new"})


async def test_concurrent_commits_share_one_fsync(open_durable):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    before = disk.syncs
    first = await start_on_held_disk(disk, *(store.put(put(b"a%d" % n)) for n in range(50)))
    second = [asyncio.create_task(store.put(put(b"b%d" % n))) for n in range(50)]
    await yield_to_loop(20)
    disk.release()
    await asyncio.gather(*first, *second)
    assert disk.syncs == before + 2


async def test_transactions_see_pending_commits(open_durable):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    tasks = await start_on_held_disk(
        disk, *(store.txn(Txn(compare=(ABSENT,), then=(put(b"a"),))) for _ in range(3))
    )
    disk.release()
    assert [result.succeeded for result in await asyncio.gather(*tasks)] == [True, False, False]


async def test_cancelled_write_does_not_affect_others(open_durable):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    given_up, other = await start_on_held_disk(disk, store.put(put(b"a")), store.put(put(b"b")))
    given_up.cancel()
    await yield_to_loop(3)
    disk.release()
    await other
    assert await state(store) == (3, {b"a": b"1", b"b": b"1"})


async def test_close_waits_for_pending_writes(open_durable):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    (task,) = await start_on_held_disk(disk, store.put(put(b"a")))
    closing = asyncio.create_task(store.close())
    await yield_to_loop(20)
    assert not closing.done()
    disk.release()
    await closing
    assert (await task).revision == 2
    with pytest.raises(Closed):
        await store.put(put(b"b"))
    assert await state(await open_durable()) == (2, {b"a": b"1"})


# --- a restart


async def test_restart_keeps_keys_versions_and_history(open_durable):
    store = await open_durable()
    await store.put(put(b"a", b"1"))
    await store.txn(Txn(then=(put(b"a", b"2"), put(b"b", b"2"))))
    await store.delete(Delete(key=b"a"))
    revisions = range(1, 5)
    past = [await store.range(Range(key=b"a", range_end=b"z", revision=r)) for r in revisions]
    await store.close()

    store = await open_durable()
    assert [await store.range(Range(key=b"a", range_end=b"z", revision=r)) for r in revisions] == past
    async with await store.watch(WatchRequest(key=b"a", start_revision=1, previous=True)) as watch:
        events = (await next_item(watch)).events
    assert [(e.kv.mod_revision, e.kind.name, e.previous and e.previous.value) for e in events] == [
        (2, "PUT", None),
        (3, "PUT", b"1"),
        (4, "DELETE", b"2"),
    ]
    assert (await store.put(put(b"c"))).revision == 5


async def test_restart_keeps_leases_with_full_ttl(open_durable, clock):
    store = await open_durable()
    await store.grant(60, 7)
    await store.grant(60, 8)
    await store.put(put(b"a", lease=7))
    await store.put(put(b"b", lease=8))
    await store.revoke(8)
    clock.advance(50)
    await store.close()

    store = await open_durable()
    assert await store.leases() == [7]
    lease = await store.time_to_live(7, keys=True)
    assert (lease.ttl, lease.remaining, lease.keys) == (60, 60, [b"a"])
    async with await store.watch(WatchRequest(key=b"a")) as watch:
        clock.advance(60)
        assert (await next_item(watch)).revision == 5
    assert await store.leases() == []
    await store.close()

    store = await open_durable()
    assert await store.leases() == []
    assert await state(store) == (5, {})


async def test_restart_keeps_compaction(open_durable):
    store = await open_durable()
    for value in (b"1", b"2", b"3"):
        await store.put(put(b"a", value))
    await store.compact(3)
    await store.close()

    store = await open_durable()
    assert (await store.status()).compact_revision == 3
    with pytest.raises(Compacted):
        await store.range(Range(key=b"a", revision=2))
    assert (await store.range(Range(key=b"a", revision=3))).kvs[0].value == b"2"
    with pytest.raises(Compacted):
        await store.compact(3)
    with pytest.raises(FutureRevision):
        await store.compact(5)


async def test_second_store_on_same_directory_is_refused(open_durable, tmp_path):
    store = await open_durable()
    with pytest.raises(Locked, match=rf"{tmp_path} is in use by process \d+"):
        await open_durable()
    await store.close()
    await open_durable()


def descriptors_of(path):
    """Return the open descriptors of a file in this process."""
    descriptors = []
    for entry in Path("/dev/fd").iterdir():
        with suppress(OSError):  # the descriptor that listed them
            if os.path.samestat(os.fstat(int(entry.name)), path.stat()):
                descriptors.append(int(entry.name))
    return descriptors


def test_refused_lock_leaves_no_descriptor(tmp_path):
    lock = DirectoryLock(tmp_path)
    held = descriptors_of(tmp_path / NAME)
    with pytest.raises(Locked):
        DirectoryLock(tmp_path)
    assert len(held) == 1
    assert descriptors_of(tmp_path / NAME) == held
    lock.release()
    assert descriptors_of(tmp_path / NAME) == []


async def test_disabled_fsync_is_logged_as_risk(open_durable, caplog):
    disk = Disk(fsync=False)
    store = await open_durable(disk=disk)
    assert "fsync is disabled: data can be lost or corrupted if the machine crashes" in caplog.text
    await store.put(put(b"a"))
    await store.close()
    assert await state(await open_durable()) == (2, {b"a": b"1"})
