"""A rewrite of a store in steps is atomic for readers, writers and watches, and after a crash."""

import asyncio
import errno
import shutil
from itertools import islice

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded import codec
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.mvcc import STEP, Mvcc
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Closed, NoSpace
from mockube.etcd.kv import Delete, EventKind, Put, Range, Txn, WatchRequest
from tests.support.event_loop import until, yield_to_loop
from tests.support.stores.disks import HeldDisk
from tests.support.stores.durable import outcome

ALL = Range(key=b"/", range_end=b"0")
OLD = {b"/%05d" % number: b"old" for number in range(0, 4 * STEP, 8)}
NEW = {b"/%05d" % number: b"new" for number in range(0, 6 * STEP, 3)}
WANTED = [Put(key=key, value=value) for key, value in NEW.items()]


@pytest.fixture(params=["memory", "durable"])
async def store(request, tmp_path):
    clock = SteppedClock()
    is_memory = request.param == "memory"
    store = MemoryStore(clock=clock) if is_memory else await DurableStore.open(tmp_path / "data", clock=clock)
    await rewrite(store, [Put(key=key, value=value) for key, value in OLD.items()])
    yield store
    await store.close()


def rewrite(store, wanted=WANTED):
    return store.rewrite(b"/", wanted, is_excluded=lambda _: False)


async def started_rewrite(store):
    """Start a rewrite and return its task when it is partially done."""
    task = asyncio.create_task(rewrite(store))
    core = store._core
    while core.get(b"/00000").value == b"old":
        await yield_to_loop()
    assert not task.done()
    return task


async def content(kv, request=ALL):
    return {kv.key: kv.value for kv in (await kv.range(request)).kvs}


async def test_reads_during_rewrite_return_all_or_nothing(store):
    before = (await store.status()).revision
    task = asyncio.create_task(rewrite(store))
    seen = []
    while not task.done():
        seen.append(await content(store))
        counted = (await store.range(Range(key=b"/", range_end=b"0", count_only=True))).count
        assert counted == len(seen[-1])
        one = await content(store, Range(key=b"/00000"))
        assert one[b"/00000"] == seen[-1][b"/00000"]
        await yield_to_loop()
    assert all(one in (OLD, NEW) for one in seen)
    assert seen.count(OLD) > 2
    assert await task == before + 1 == (await store.status()).revision
    assert await content(store) == NEW
    assert await content(store, Range(key=b"/", range_end=b"0", revision=before)) == OLD


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda store: store.put(Put(key=b"/x", value=b"later")), id="put"),
        pytest.param(lambda store: store.delete(Delete(key=b"/00003")), id="delete"),
        pytest.param(lambda store: rewrite(store, WANTED[1:]), id="another"),
    ],
)
async def test_writes_wait_for_rewrite(store, write):
    task = await started_rewrite(store)
    later = asyncio.create_task(write(store))
    revision = await task
    await later
    assert await content(store, Range(key=b"/", range_end=b"0", revision=revision)) == NEW
    assert (await store.status()).revision == revision + 1


async def test_write_waits_for_several_rewrites(store):
    first = await started_rewrite(store)
    second = asyncio.create_task(rewrite(store, WANTED[1:]))
    revision = await first
    written = await store.put(Put(key=b"/x", value=b"later"))
    assert (await second, written.revision) == (revision + 1, revision + 2)
    expected = {put.key: put.value for put in WANTED[1:]}
    assert await content(store, Range(key=b"/", range_end=b"0", revision=revision + 1)) == expected
    assert await content(store) == expected | {b"/x": b"later"}


async def test_waiting_rewrites_run_one_after_the_other(store):
    before = (await store.status()).revision
    numbers = range(4)
    revisions = await asyncio.gather(*(rewrite(store, WANTED[number:]) for number in numbers))
    assert revisions == [before + 1 + number for number in numbers]
    for number, revision in enumerate(revisions):
        expected = {put.key: put.value for put in WANTED[number:]}
        assert await content(store, Range(key=b"/", range_end=b"0", revision=revision)) == expected


async def test_rewrite_begins_once_earlier_writes_are_durable(open_durable):
    """If the log cannot be written, an earlier write is undone as the newest change: a rewrite must not have begun."""
    disk = HeldDisk()
    store = await open_durable(disk=disk)
    await store.put(Put(key=b"/old", value=b"1"))
    visited_keys = []
    disk.hold("write")
    writing = asyncio.create_task(outcome(store.put(Put(key=b"/new", value=b"1"))))
    rewriting = asyncio.create_task(outcome(store.rewrite(b"/", WANTED, is_excluded=visited_keys.append)))
    await until(lambda: disk.waiting)
    await yield_to_loop(20)
    assert visited_keys == []
    disk.write_error = errno.ENOSPC
    disk.release()
    assert [type(await writing), type(await rewriting)] == [NoSpace, NoSpace]
    assert visited_keys == []
    assert await content(store) == {b"/old": b"1"}
    disk.write_error = None
    await rewrite(store)
    assert await content(store) == NEW


async def test_revoked_lease_waits_for_rewrite(store):
    lease = await store.grant(10)
    await store.put(Put(key=b"/00000", value=b"old", lease=lease.id))
    await store.put(Put(key=b"~", value=b"", lease=lease.id))
    task = await started_rewrite(store)
    revoking = asyncio.create_task(store.revoke(lease.id))
    revision = await task
    await revoking
    assert (await store.status()).revision == revision + 1
    assert await content(store) == NEW
    assert (await store.range(Range(key=b"~", revision=revision))).kvs
    assert not (await store.range(Range(key=b"~"))).kvs


async def test_lease_renewed_during_rewrite_does_not_expire(store):
    lease = await store.grant(10)
    task = await started_rewrite(store)
    store._clock.advance(10)
    await yield_to_loop(3)
    assert not task.done()
    await store.keep_alive(lease.id)
    await task
    await yield_to_loop(3)
    assert await store.leases() == [lease.id]


async def test_lease_expiry_waits_for_rewrite(store):
    lease = await store.grant(10)
    other = await store.grant(100)
    await store.put(Put(key=b"~", value=b"", lease=lease.id))
    task = await started_rewrite(store)
    store._clock.advance(20)
    renewing = asyncio.create_task(store.keep_alive(other.id))  # restarts the expiry timer
    await yield_to_loop()
    store._clock.advance(1)
    await yield_to_loop(3)
    revision = await task
    await renewing
    while (await store.status()).revision == revision:
        await yield_to_loop()
    assert not (await store.range(Range(key=b"~"))).kvs
    assert lease.id not in await store.leases()


async def test_lease_keys_are_read_after_rewrite(store):
    lease = await store.grant(10)
    await store.put(Put(key=b"/00000", value=b"old", lease=lease.id))
    task = await started_rewrite(store)
    assert tuple((await store.time_to_live(lease.id, keys=True)).keys) == ()
    assert task.done()


@pytest.mark.parametrize("is_closed", [False, True], ids=["done", "closed"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_compaction_during_rewrite_frees_older_revisions_only(at, is_closed):
    core = Mvcc()
    for key, value in OLD.items():
        core.txn(Txn(then=(Put(key=key, value=value),)))
    for operation in (Put(key=b"/00000", value=b"later"), Delete(key=b"/00008"), Delete(key=b"/00024")):
        core.txn(Txn(then=(operation,)))
    before = core.revision
    expected = dict((OLD | {b"/00000": b"later"}).items() - {(b"/00008", b"old"), (b"/00024", b"old")})
    steps = core.rewrite(b"/", WANTED, lambda _: False)
    assert len(list(islice(steps, at))) == at
    core.compact(before)
    while core.sweep(100):
        pass
    assert {kv.key: kv.value for kv in core.range(ALL, before).kvs} == expected
    if is_closed:
        steps.close()
        assert core.revision == before
        assert {kv.key: kv.value for kv in core.range(ALL, before).kvs} == expected
    else:
        list(steps)
        past = Range(key=b"/", range_end=b"0", revision=before)
        assert {kv.key: kv.value for kv in core.range(past, core.revision).kvs} == expected
        expected = NEW
        core.compact(core.revision)
        while core.sweep(100):
            pass
        assert {kv.key: kv.value for kv in core.range(ALL, core.revision).kvs} == expected
    assert core.size == sum(len(key) + len(value) for key, value in expected.items())


async def test_crash_during_rewrite_leaves_all_or_nothing(tmp_path):
    store = await DurableStore.open(tmp_path / "data", clock=SteppedClock())
    await rewrite(store, [Put(key=key, value=value) for key, value in OLD.items()])
    task, found = asyncio.create_task(rewrite(store)), []
    while not task.done():
        copy = tmp_path / f"copy{len(found)}"
        shutil.copytree(tmp_path / "data", copy)
        copy.chmod(0o700)
        again = await DurableStore.open(copy, clock=SteppedClock())
        found.append(await content(again))
        await again.close()
        await yield_to_loop()
    await store.close()
    assert all(one in (OLD, NEW) for one in found)
    assert found[0] == OLD


async def test_watches_get_rewrite_as_one_revision(store):
    async with await store.watch(WatchRequest(key=b"/", range_end=b"0")) as early:
        task = await started_rewrite(store)
        request = WatchRequest(key=b"/0", range_end=b"/1", previous=True)
        async with await store.watch(request) as late:
            revision = await task
            first, second = await anext(early), await anext(late)
    assert first.revision == second.revision == revision
    assert [event.kv for event in first.events] == [event.kv for event in second.events]
    assert {event.kv.key for event in first.events} == OLD.keys() | NEW.keys()
    assert not any(event.previous for event in first.events)
    assert second.events[0].previous is not None


async def test_cancelled_caller_does_not_stop_rewrite(store):
    task = await started_rewrite(store)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.put(Put(key=b"/00000", value=b"new"))
    assert await content(store) == NEW


async def test_close_during_rewrite_leaves_old_state(store, tmp_path):
    task = await started_rewrite(store)
    waiting = asyncio.create_task(store.put(Put(key=b"/x", value=b"")))
    await yield_to_loop()
    await store.close()
    for one in (task, waiting):
        with pytest.raises(Closed):
            await one
    if isinstance(store, DurableStore):
        again = await DurableStore.open(tmp_path / "data", clock=SteppedClock())
        assert await content(again) == OLD
        await again.close()


async def test_rewrite_survives_restart(tmp_path):
    for _ in range(2):
        store = await DurableStore.open(tmp_path, clock=SteppedClock())
        await rewrite(store)
        assert (await store.status()).revision == 2
        assert await content(store) == NEW
        await store.close()


def test_rewrite_closed_early_changes_nothing():
    core = Mvcc()
    for key, value in OLD.items():
        core.txn(Txn(then=(Put(key=key, value=value),)))
    before = core.revision
    steps = core.rewrite(b"/", WANTED, lambda _: False)
    assert len(list(islice(steps, 3))) == 3
    steps.close()
    found = core.range(ALL, before)
    assert ({kv.key: kv.value for kv in found.kvs}, core.revision) == (OLD, before)
    assert core.size == sum(len(key) + len(value) for key, value in OLD.items())


def test_commit_in_parts_is_encoded_as_one():
    core = Mvcc()
    core.txn(Txn(then=tuple(WANTED[:100])))
    (events,) = core.events(2, 2)
    parts = [*codec.encode_changes(events[:40]), *codec.encode_changes(events[40:])]
    (entry,) = codec.decode_entries(memoryview(codec.join([codec.join_commit(2, parts)])))
    (whole,) = codec.decode_entries(memoryview(codec.join([codec.encode(codec.commit(2, events))])))
    assert entry == whole


# --- keys whose new value is another thing

OTHERS = {b"/00000", b"/00024"}


def rewrite_others(store):
    """Rewrite to WANTED; two of the keys are other things by their values."""
    wanted = [Put(key=put.key, value=b"other") if put.key in OTHERS else put for put in WANTED]
    return store.rewrite(
        b"/", wanted, is_excluded=lambda _: False, is_other=lambda _, new: new == b"other", note=("a",)
    )


OTHER_CONTENT = NEW | dict.fromkeys(OTHERS, b"other")


async def test_other_thing_is_a_deletion_and_a_creation_for_watches(store):
    before = (await store.status()).revision
    async with await store.watch(WatchRequest(key=b"/", range_end=b"0", previous=True)) as watch:
        assert await rewrite_others(store) == before + 2
        deletions, changes = await collected(watch, before + 2)
    assert {event.kv.key for event in deletions} == OTHERS
    assert {event.kind for event in deletions} == {EventKind.DELETE}
    created = {event.kv.key for event in changes if event.kv.version == 1 and event.kind is EventKind.PUT}
    assert created == OTHERS | (NEW.keys() - OLD.keys())
    deleted = {event.kv.key for event in changes if event.kind is EventKind.DELETE}
    assert deleted == OLD.keys() - NEW.keys()
    assert await content(store) == OTHER_CONTENT
    remaining = await content(store, Range(key=b"/", range_end=b"0", revision=before + 1))
    assert remaining == {key: value for key, value in OLD.items() if key not in OTHERS}


async def collected(watch, revision):
    """The events of the watch by revision, up to one."""
    by_revision = {}
    while True:
        batch = await anext(watch)
        for event in batch.events:
            by_revision.setdefault(event.kv.mod_revision, []).append(event)
        if batch.revision >= revision:
            return [by_revision[key] for key in sorted(by_revision)]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store, _: store.grant(10), id="grant"),
        pytest.param(lambda store, lease: store.keep_alive(lease), id="renewal"),
        pytest.param(lambda store, lease: store.time_to_live(lease), id="time to live"),
        pytest.param(lambda store, _: store.leases(), id="leases"),
    ],
)
async def test_calls_for_leases_do_not_publish_half_a_rewrite(store, call, tmp_path):
    lease = await store.grant(1000)
    before = (await store.status()).revision
    task, calls, seen = asyncio.create_task(rewrite_others(store)), [], []
    async with await store.watch(WatchRequest(key=b"/", range_end=b"0")) as watch:
        while not task.done():
            calls.append(asyncio.create_task(call(store, lease.id)))
            seen.append(((await store.status()).revision, await content(store)))
            await yield_to_loop()
        await asyncio.gather(*calls)
        deletions, changes = await collected(watch, before + 2)
    assert {event.kv.key for event in deletions} == OTHERS
    assert {event.kv.key for event in changes} == OLD.keys() | NEW.keys()
    assert all(one in ((before, OLD), (before + 2, OTHER_CONTENT)) for one in seen)
    if isinstance(store, DurableStore):
        revisions = [Range(key=b"/", range_end=b"0", revision=before + after) for after in range(3)]
        expected = [await content(store, each) for each in revisions]
        await store.close()
        again = await DurableStore.open(tmp_path / "data", clock=SteppedClock())
        assert [await content(again, each) for each in revisions] == expected
        assert (await again.status()).revision == before + 2
        await again.close()


async def test_reads_see_no_key_deleted_that_comes_back(store):
    task = asyncio.create_task(rewrite_others(store))
    seen = []
    while not task.done():
        seen.append(await content(store))
        await yield_to_loop()
    assert all(one in (OLD, OTHER_CONTENT) for one in seen)
    assert seen.count(OLD) > 2


@pytest.mark.parametrize("steps", range(12))
def test_rewrite_of_other_things_that_ends_early_is_reverted(steps):
    core = Mvcc()
    core.txn(Txn(then=tuple(Put(key=key, value=value) for key, value in [*OLD.items()][:100])))
    before, revision = [*core.walk(core.revision)], core.revision
    wanted = [Put(key=b"/00000", value=b"other"), *WANTED[1:]]
    rewriting = core.rewrite(b"/", wanted, lambda _: False, lambda _, new: new == b"other")
    taken = [*islice(rewriting, steps)]
    if len(taken) == steps:
        rewriting.close()
        assert ([*core.walk(core.revision)], core.revision) == (before, revision)


async def test_both_revisions_are_durable_with_one_note(tmp_path):
    store = await DurableStore.open(tmp_path, clock=SteppedClock())
    await rewrite(store, [Put(key=key, value=value) for key, value in OLD.items()])
    revision = await rewrite_others(store)
    await store.close()
    reopened = await DurableStore.open(tmp_path, clock=SteppedClock())
    assert ((await reopened.status()).revision, await content(reopened)) == (revision, OTHER_CONTENT)
    assert reopened.take_notes() == [(revision - 1, ["a"]), (revision, ["a"])]
    await reopened.close()


async def test_both_revisions_are_undone_if_the_disk_is_full(tmp_path):
    disk = HeldDisk()
    store = await DurableStore.open(tmp_path, clock=SteppedClock(), disk=disk)
    await rewrite(store, [Put(key=key, value=value) for key, value in OLD.items()])
    before = (await store.status()).revision
    disk.write_error = errno.ENOSPC
    with pytest.raises(NoSpace):
        await rewrite_others(store)
    assert ((await store.status()).revision, await content(store)) == (before, OLD)
    assert store._core.revision == before
    disk.write_error = 0
    await store.close()
