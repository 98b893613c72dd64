"""Snapshots of a running store replace the log before them, and do not block the store."""

import asyncio
import errno
import logging

import pytest

from mockube.etcd.embedded.segment import segment_numbers
from mockube.etcd.embedded.snapshot import read_snapshot, snapshot_path, snapshot_paths, snapshot_revisions
from mockube.etcd.kv import Delete, Range, WatchRequest
from tests.support.event_loop import next_item, until, yield_to_loop
from tests.support.stores.disks import FaultyDisk, HeldDisk
from tests.support.stores.durable import put, state

EVERY_KEY = {"key": b"\x00", "range_end": b"\x00"}
SMALL = 500
"""The size of a segment in bytes: about ten puts."""


@pytest.fixture(autouse=True)
def _log_all(caplog):
    caplog.set_level(logging.INFO)


async def put_and_delete(store, count, keys=7):
    """Put and delete keys, so that revisions update, delete and create them again."""
    for n in range(count):
        key = b"key %d" % (n % keys)
        await (store.delete(Delete(key=key)) if n % 5 == 4 else store.put(put(key, b"value %d" % n)))


async def compact(store, caplog, behind=3):
    """Compact, and wait for the snapshot that follows."""
    before = caplog.text.count("took a snapshot")
    await store.compact((await store.status()).revision - behind)
    await until(lambda: caplog.text.count("took a snapshot") > before and not store._in_checkpoint)


async def history(store):
    """Return all readable state: the keys at each revision, and the events of a watch from the oldest one."""
    status = await store.status()
    revisions = range(status.compact_revision, status.revision + 1)
    past = [await store.range(Range(**EVERY_KEY, revision=revision)) for revision in revisions]
    request = WatchRequest(**EVERY_KEY, start_revision=status.compact_revision, previous=True)
    async with await store.watch(request) as watch:
        return past, await next_item(watch)


async def test_snapshot_replaces_log_before_it(open_durable, tmp_path, caplog):
    store = await open_durable(segment_bytes=SMALL)
    await store.grant(60, 7)
    await store.put(put(b"leased", lease=7))
    await put_and_delete(store, 100)
    await compact(store, caplog)
    expected = await history(store)
    assert snapshot_revisions(tmp_path) == [(await store.status()).compact_revision]
    await store.close()

    store = await open_durable()
    assert await history(store) == expected
    assert (await store.time_to_live(7, keys=True)).keys == [b"leased"]
    assert "took a snapshot" in caplog.text


@pytest.mark.thorough
async def test_two_snapshots_and_log_since_older_are_kept(open_durable, tmp_path, caplog):
    store = await open_durable(segment_bytes=SMALL)
    for _ in range(4):
        await put_and_delete(store, 100)
        await compact(store, caplog)
    expected = await history(store)
    await store.close()

    older, newest = snapshot_revisions(tmp_path)
    assert segment_numbers(tmp_path)[0] > 1
    snapshot_path(tmp_path, newest).unlink()
    assert await history(await open_durable()) == expected
    assert older < newest


@pytest.fixture
async def hold_in_snapshot(open_durable):
    """Return a function that pauses a store in a snapshot at revision 5002, and returns it with its disk.

    The store may be compacted before; that compaction frees too little of the log for a snapshot.
    """

    async def hold_in_snapshot(*, is_compacted=False):
        disk = HeldDisk()
        store = await open_durable(segment_bytes=SMALL, disk=disk)
        await store.grant(60, 7)
        await store.put(put(b"leased", lease=7))
        if is_compacted:
            await store.compact(2)
            await until(lambda: not store._in_checkpoint)
        await asyncio.gather(*(store.put(put(b"key %d" % n, b"before")) for n in range(5000)))
        disk.hold("write", by="snapshot", after=3)
        await store.compact(5002)
        await until(lambda: disk.waiting)
        return store, disk

    return hold_in_snapshot


@pytest.mark.thorough
async def test_store_accepts_writes_during_snapshot(hold_in_snapshot, open_durable, tmp_path):
    store, disk = await hold_in_snapshot()
    async with asyncio.TaskGroup() as group:
        for n in range(0, 5000, 2):
            group.create_task(store.put(put(b"key %d" % n, b"after")))
            group.create_task(store.delete(Delete(key=b"key %d" % (n + 1))))
    await store.compact(9_990)
    assert (await state(store))[0] == 10_002
    assert snapshot_paths(tmp_path) == []
    disk.release()
    await until(lambda: not store._in_checkpoint)
    assert snapshot_paths(tmp_path) == [snapshot_path(tmp_path, 5002)]
    expected = await history(store)
    await store.close()
    assert await history(await open_durable()) == expected


@pytest.mark.thorough
async def test_sweep_waits_for_snapshot(hold_in_snapshot, open_durable, tmp_path, monkeypatch):
    """A sweep that had begun before must not free what the snapshot still reads, if a later compaction allows it."""
    monkeypatch.setattr(
        "mockube.etcd.embedded.store.SWEEP", 0
    )  # a sweep that frees nothing yet, and continues
    store, disk = await hold_in_snapshot(is_compacted=True)
    await asyncio.gather(*(store.delete(Delete(key=b"key %d" % n)) for n in range(5000)))
    await store.compact(10_000)
    monkeypatch.setattr("mockube.etcd.embedded.store.SWEEP", 20_000)
    await yield_to_loop(3)
    disk.release()
    await until(lambda: not store._in_checkpoint)
    expected = await history(store)
    await store.close()
    assert len(read_snapshot(snapshot_path(tmp_path, 5002)).kvs) == 5001
    assert await history(await open_durable()) == expected


@pytest.mark.thorough
async def test_snapshot_waits_for_lease_records_in_log(hold_in_snapshot, tmp_path):
    store, disk = await hold_in_snapshot()
    disk.release()
    disk.hold("sync", by="log")
    revoking = asyncio.create_task(store.revoke(7))
    await until(lambda: disk.waiting)
    await yield_to_loop(1000)
    assert snapshot_paths(tmp_path) == []
    disk.release()
    await revoking
    await until(lambda: not store._in_checkpoint)
    assert read_snapshot(snapshot_path(tmp_path, 5002)).leases == {}


@pytest.mark.thorough
async def test_snapshot_is_taken_only_if_it_frees_enough_log(open_durable, tmp_path, caplog):
    store = await open_durable(segment_bytes=SMALL)
    await asyncio.gather(*(store.put(put(b"key %d" % n, b"x" * 100)) for n in range(200)))
    for _ in range(40):
        await put_and_delete(store, 15)
        await store.compact((await store.status()).revision)
        await until(lambda: not store._in_checkpoint)
    sizes = [record.args[0] for record in caplog.records if "took a snapshot" in record.message]
    assert 2 <= len(sizes) <= 5
    assert sum(sizes[1:-1]) < 15 * 40 * 60


async def test_full_disk_fails_snapshot_and_keeps_files(open_durable, tmp_path, caplog):
    disk = FaultyDisk()
    store = await open_durable(segment_bytes=SMALL, disk=disk)
    await put_and_delete(store, 100)
    await store.compact((await store.status()).revision)
    disk.write_error = errno.ENOSPC
    await until(lambda: "failed to take a snapshot, so the log is not truncated" in caplog.text)
    disk.write_error = None
    await until(lambda: not list(tmp_path.glob("*.tmp")))
    assert snapshot_revisions(tmp_path) == []
    assert segment_numbers(tmp_path)[0] == 1
    await put_and_delete(store, 10)
    await compact(store, caplog)
    expected = await history(store)
    await store.close()
    assert await history(await open_durable()) == expected


@pytest.mark.thorough
async def test_close_during_snapshot_leaves_no_files(hold_in_snapshot, open_durable, tmp_path):
    store, disk = await hold_in_snapshot()
    expected = await state(store)
    closing = asyncio.create_task(store.close())
    await yield_to_loop(3)
    disk.release()
    await closing
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".log"}
    assert await state(await open_durable()) == expected
