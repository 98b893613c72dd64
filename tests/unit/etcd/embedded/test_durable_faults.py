"""The durable store with a failing disk: failed writes are undone, acknowledged ones stay, and reads continue."""

import asyncio
import errno

import pytest

from mockube.etcd.embedded.group_commit import PROBE_SECONDS
from mockube.etcd.errors import Interrupted, LeaseNotFound, NoSpace, Unavailable
from mockube.etcd.kv import Delete, PutResult, Range, Txn, WatchRequest
from tests.support.event_loop import WAIT_TIMEOUT, next_item, until, yield_to_loop
from tests.support.stores.disks import FaultyDisk, HeldDisk
from tests.support.stores.durable import ABSENT, outcome, put, start_on_held_disk, state


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, NoSpace), (errno.EDQUOT, NoSpace), (errno.EIO, Unavailable)]
)
async def test_failed_write_is_undone_and_later_writes_are_tried(open_durable, number, error):
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    await store.put(put(b"a", b"kept"))
    watch = await store.watch(WatchRequest(key=b"\x00", range_end=b"\x00"))
    disk.write_error = number
    failed = await asyncio.gather(
        store.put(put(b"a", b"undone")),
        store.txn(Txn(compare=(ABSENT,), otherwise=(Delete(key=b"a"),))),
        store.put(put(b"b")),
        return_exceptions=True,
    )
    assert [type(e) for e in failed] == [error] * 3
    assert await state(store) == (2, {b"a": b"kept"})
    disk.write_error = None
    assert (await store.put(put(b"c"))).revision == 3
    batch = await next_item(watch)
    assert [event.kv.key for event in batch.events] == [b"c"]
    await store.close()
    assert await state(await open_durable()) == (3, {b"a": b"kept", b"c": b"1"})


async def test_disk_full_within_record_keeps_acknowledged_writes(open_durable):
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    disk.leave_room(1000)
    keys = {b"%d" % n for n in range(50)}
    answers = {key: await outcome(store.put(put(key))) for key in keys}
    acknowledged = {key: b"1" for key, answer in answers.items() if isinstance(answer, PutResult)}
    assert 3 < len(acknowledged) < 50
    assert {type(answer) for key, answer in answers.items() if key not in acknowledged} == {NoSpace}
    assert await state(store) == (1 + len(acknowledged), acknowledged)
    disk.leave_room(None)
    await store.put(put(b"later"))
    await store.close()
    assert await state(await open_durable()) == (2 + len(acknowledged), acknowledged | {b"later": b"1"})


@pytest.mark.parametrize("recovers_by", ["a write", "a trial"])
async def test_full_disk_is_a_problem_until_it_has_space(open_durable, clock, recovers_by):
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    assert (await store.status()).problem == ""
    disk.leave_room(0)
    with pytest.raises(NoSpace) as failed:
        await store.put(put(b"a"))
    assert failed.value.reason == "No space left on device"
    assert failed.value.path
    for _ in range(3):
        assert (await store.status()).problem == "No space left on device"
        clock.advance(PROBE_SECONDS)
    disk.leave_room(None)
    if recovers_by == "a write":
        await store.put(put(b"a"))
        assert (await store.status()).problem == ""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while (await store.status()).problem:
            clock.advance(PROBE_SECONDS)
            await yield_to_loop()
    await store.close()
    await open_durable()


async def test_store_that_must_be_restarted_stays_a_problem(open_durable, clock):
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    disk.sync_error = errno.EIO
    with pytest.raises(Interrupted):
        await store.put(put(b"a"))
    disk.sync_error = None
    clock.advance(PROBE_SECONDS)
    assert (await store.status()).problem.startswith("read-only until it is restarted: fsync failed: ")
    with pytest.raises(Unavailable):
        await store.put(put(b"a"))


async def test_failed_write_restores_leases(open_durable, clock):
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    await store.grant(60, 7)
    await store.put(put(b"a", lease=7))
    disk.write_error = errno.ENOSPC
    failed = await asyncio.gather(
        store.grant(60, 8),
        store.put(put(b"b", lease=8)),
        store.revoke(7),
        store.revoke(8),
        return_exceptions=True,
    )
    assert [type(e) for e in failed] == [NoSpace] * 4
    assert await store.leases() == [7]
    assert (await store.time_to_live(7, keys=True)).keys == [b"a"]
    assert await state(store) == (2, {b"a": b"1"})


async def test_changes_of_failed_write_are_undone_newest_first(open_durable):
    """The revocation deletes the key of the lease: undone after the put, the lease would be granted without its key."""
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    await store.grant(60, 7)
    await store.put(put(b"a", lease=7))
    disk.write_error = errno.ENOSPC
    failed = await asyncio.gather(store.put(put(b"b")), store.revoke(7), return_exceptions=True)
    assert [type(error) for error in failed] == [NoSpace] * 2
    assert await state(store) == (2, {b"a": b"1"})
    assert (await store.time_to_live(7, keys=True)).keys == [b"a"]


async def test_lease_whose_failed_revocation_outlasted_it_expires_later(open_durable, clock):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    await store.grant(60, 7)
    await store.put(put(b"a", lease=7))
    disk.hold("write")
    revoking = asyncio.create_task(outcome(store.revoke(7)))
    await until(lambda: disk.waiting)
    clock.advance(60)
    await yield_to_loop(3)
    disk.write_error = errno.ENOSPC
    disk.release()
    assert isinstance(await revoking, NoSpace)
    assert (await store.time_to_live(7)).remaining == 60
    disk.write_error = None
    assert clock.next_due() == 60
    async with await store.watch(WatchRequest(key=b"a")) as watch:
        clock.advance(60)
        await next_item(watch)
    assert await store.leases() == []


async def test_lease_whose_expiry_cannot_be_written_restarts(open_durable, clock, caplog):
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    await store.grant(60, 7)
    await store.put(put(b"a", lease=7))
    disk.write_error = errno.ENOSPC
    clock.advance(60)
    await until(
        lambda: "the expiry of lease 7 could not be written to the log, so its TTL restarts" in caplog.text
    )
    assert (await store.time_to_live(7)).remaining == 60
    disk.write_error = None
    async with await store.watch(WatchRequest(key=b"a")) as watch:
        clock.advance(60)
        await next_item(watch)
    assert await store.leases() == []


async def test_cancelled_write_that_fails_does_not_affect_others(open_durable):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    disk.hold("write")
    cancelled, other = [asyncio.create_task(outcome(store.put(put(key)))) for key in (b"a", b"b")]
    await until(lambda: disk.waiting)
    cancelled.cancel()
    await yield_to_loop(3)
    disk.write_error = errno.ENOSPC
    supervising = asyncio.create_task(store.supervise())
    disk.release()
    await asyncio.wait([other, supervising], return_when=asyncio.FIRST_COMPLETED)
    assert not supervising.done()
    supervising.cancel()
    assert isinstance(await other, NoSpace)
    disk.write_error = None
    assert (await store.put(put(b"c"))).revision == 2
    assert await state(store) == (2, {b"c": b"1"})


async def test_failed_compaction_is_undone(open_durable):
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    await store.put(put(b"a"))
    disk.write_error = errno.ENOSPC
    with pytest.raises(NoSpace):
        await store.compact(2)
    assert (await store.range(Range(key=b"a", revision=1))).kvs == ()
    disk.write_error = None
    await store.compact(2)


async def test_failed_fsync_makes_store_read_only_with_unknown_outcome(open_durable):
    disk = FaultyDisk()
    store = await open_durable(disk=disk)
    await store.put(put(b"a", b"kept"))
    disk.sync_error = errno.EIO
    with pytest.raises(Interrupted, match="fsync failed"):
        await store.put(put(b"a", b"unknown"))
    disk.sync_error = None
    for write in (
        lambda: store.put(put(b"b")),
        lambda: store.delete(Delete(key=b"a")),
        lambda: store.grant(60),
        lambda: store.compact(2),
    ):
        with pytest.raises(Unavailable, match="read-only until it is restarted"):
            await write()
    assert await state(store) == (2, {b"a": b"kept"})
    assert (await store.txn(Txn(then=(Range(key=b"a"),)))).results[0].kvs[0].value == b"kept"
    assert not (await store.txn(Txn(compare=(ABSENT,), then=(put(b"a"),)))).succeeded
    with pytest.raises(LeaseNotFound):
        await store.revoke(7)
    await store.close()
    revision, kvs = await state(await open_durable())
    assert (revision, kvs) in [(2, {b"a": b"kept"}), (3, {b"a": b"unknown"})]


async def test_unexpected_error_does_not_block_writers(open_durable, caplog):
    class FailingDisk(FaultyDisk):
        def write(self, fd, data, offset):
            if self.mistaken:
                raise ValueError("a mistake")
            return super().write(fd, data, offset)

        mistaken = False

    disk = FailingDisk()
    store = await open_durable(disk=disk)
    disk.mistaken = True
    with pytest.raises(Interrupted, match="the log's writer failed: ValueError"):
        await store.put(put(b"a"))
    assert "the log's writer failed" in caplog.text
    with pytest.raises(Unavailable):
        await store.put(put(b"a"))
    assert await state(store) == (1, {})


async def test_writes_queued_behind_failed_fsync_are_known_to_have_failed(open_durable):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    (writing,) = await start_on_held_disk(disk, store.put(put(b"a")))
    gathering = asyncio.create_task(outcome(store.put(put(b"b"))))
    await yield_to_loop(3)
    disk.sync_error = errno.EIO
    disk.release()
    assert [type(await outcome(writing)), type(await gathering)] == [Interrupted, Unavailable]
    assert await state(store) == (1, {})


async def test_transactions_based_on_failed_write_are_undone(open_durable):
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    await store.put(put(b"a", b"kept"))
    disk.hold("write")
    writing = asyncio.create_task(outcome(store.put(put(b"a", b"undone"))))
    await until(lambda: disk.waiting)
    gathering = asyncio.create_task(outcome(store.txn(Txn(then=(put(b"b"), Delete(key=b"a"))))))
    await yield_to_loop(3)
    disk.write_error = errno.ENOSPC
    disk.release()
    assert [type(await writing), type(await gathering)] == [NoSpace, NoSpace]
    disk.write_error = None
    assert (await store.put(put(b"c"))).revision == 3
    assert await state(store) == (3, {b"a": b"kept", b"c": b"1"})
