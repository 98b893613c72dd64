"""Restore of an archive: refused, in one transaction, or in several with a marker; and the resulting watch events."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.archive.lines import IncompleteRestore, restore_marker_key
from mockube.etcd.archive.restore import BYTES, NotEmpty, RestoreTarget, restore
from mockube.etcd.archive.write import archive
from mockube.etcd.embedded.directory import create_after, is_new
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Unavailable
from mockube.etcd.kv import EventKind, Put, Range, WatchRequest, prefix_end
from tests.support.event_loop import yield_to_loop
from tests.support.stores.archives import ROOT, TAKEN_AT, entries, fill, opened, saved

PLACE = RestoreTarget(root=ROOT)
CONTENT = {b"pods/a": b'{"a":1}', b"pods/b": b'{"b":1}', b"leases/kube-system/x": b'{"l":1}'}


async def data_of(content):
    store = MemoryStore(clock=SteppedClock())
    await fill(store, content)
    return await saved(store)


async def test_restore_replaces_keys_only_with_replace(store):
    await fill(store, {b"pods/c": b"{}"})
    data = await data_of(CONTENT)
    with pytest.raises(NotEmpty, match="holds 1 objects"):
        await restore(store, opened(data), PLACE, replace=False)
    await restore(store, opened(data), PLACE, replace=True)
    assert entries(await saved(store)) == entries(data)


async def test_excluded_keys_are_kept_by_restore(store):
    await fill(store, {b"leases/kube-system/x": b"mine"})
    place = RestoreTarget(root=ROOT, excluded_prefixes=(b"leases/kube-system/",))
    await restore(store, opened(await data_of(CONTENT)), place, replace=False)
    found = (await store.range(Range(key=ROOT, range_end=prefix_end(ROOT), keys_only=True))).kvs
    assert [kv.key.removeprefix(ROOT) for kv in found][-2:] == [b"pods/a", b"pods/b"]
    assert b"mine" in [kv.value for kv in (await store.range(Range(key=ROOT + b"leases/kube-system/x"))).kvs]


async def test_watch_sees_restore_as_one_revision_of_differences():
    store = MemoryStore(clock=SteppedClock())
    await fill(store, CONTENT)
    data = await saved(store)
    await fill(store, {b"pods/b": b'{"b":2}', b"pods/c": b"{}"})
    before = (await store.status()).revision
    async with await store.watch(WatchRequest(key=ROOT, range_end=prefix_end(ROOT))) as watch:
        await restore(store, opened(data), PLACE, replace=True)
        batch = await anext(watch)
    assert batch.revision == before + 1
    assert [(event.kind, event.kv.key) for event in batch.events] == [
        (EventKind.DELETE, ROOT + b"pods/c"),
        (EventKind.PUT, ROOT + b"pods/b"),
    ]


async def test_archive_can_be_restored_under_other_prefix(store):
    await restore(store, opened(await data_of(CONTENT)), RestoreTarget(root=b"/other/"), replace=True)
    assert (await store.range(Range(key=b"/other/pods/a"))).kvs[0].value == CONTENT[b"pods/a"]


@pytest.mark.thorough
async def test_archive_larger_than_one_transaction_is_restored(store):
    large = {b"large/%d" % number: b"x" * (BYTES // 3) for number in range(5)}
    many = {b"many/%04d" % number: b"{}" for number in range(250)}
    data = await data_of(large | many)
    await restore(store, opened(data), PLACE, replace=True)
    assert entries(await saved(store)) == entries(data)


async def test_restored_leased_keys_expire_after_full_ttl():
    clock = SteppedClock()
    source, target = MemoryStore(clock=clock), MemoryStore(clock=clock)
    lease = (await source.grant(60)).id
    await source.put(Put(key=ROOT + b"events/e", value=b"{}", lease=lease))
    clock.advance(50)
    await restore(target, opened(await saved(source)), PLACE, replace=False)
    clock.advance(59)
    await yield_to_loop()
    assert (await target.range(Range(key=ROOT + b"events/e"))).count == 1
    async with await target.watch(WatchRequest(key=ROOT + b"events/e")) as watch:
        clock.advance(1)
        assert (await anext(watch)).events[0].kind is EventKind.DELETE


class FailingStore:
    """A store that is not ours, and fails after a number of transactions."""

    def __init__(self, kv, last):
        self._kv = kv
        self._left = last

    def __getattr__(self, name):
        return getattr(self._kv, name)

    async def txn(self, request):
        self._left -= 1
        if self._left < 0:
            raise Unavailable("gone")
        return await self._kv.txn(request)


async def test_interrupted_restore_leaves_marker():
    store, data = (
        MemoryStore(clock=SteppedClock()),
        await data_of({b"pods/%03d" % n: b"{}" for n in range(250)}),
    )
    with pytest.raises(Unavailable):
        await restore(FailingStore(store, last=1), opened(data), PLACE, replace=False)
    with pytest.raises(IncompleteRestore, match=r"restore of saved\.gz was interrupted"):
        await saved(store)
    await restore(FailingStore(store, last=10**6), opened(data), PLACE, replace=True)
    assert entries(await saved(store)) == entries(data)
    assert (await store.range(Range(key=restore_marker_key(ROOT)))).count == 0


async def test_restore_into_new_directory_starts_at_requested_revision(tmp_path):
    path = tmp_path / "store"
    assert is_new(path)
    create_after(path, 5_000, Disk(fsync=False))
    assert not is_new(path)
    for _ in range(2):
        store = await DurableStore.open(path, clock=SteppedClock(), disk=Disk(fsync=False))
        revision = (await store.status()).revision
        await store.put(Put(key=b"/registry/a", value=b"{}"))
        await store.close()
    assert revision == 5_001


async def test_restored_store_survives_restart(tmp_path):
    data, disk = await data_of(CONTENT), Disk(fsync=False)
    store = await DurableStore.open(tmp_path, clock=SteppedClock(), disk=disk)
    await fill(store, {b"pods/z": b"{}"})
    await restore(store, opened(data), PLACE, replace=True)
    await store.close()
    again = await DurableStore.open(tmp_path, clock=SteppedClock(), disk=disk)
    assert entries(await saved(again)) == entries(data)
    await again.close()


async def test_archive_contains_one_revision_during_writes(store, monkeypatch):
    monkeypatch.setattr("mockube.etcd.archive.write.PAGE", 10)
    await fill(store, {b"pods/%03d" % number: b'{"n":1}' for number in range(50)})
    before = entries(await saved(store))
    pieces = []
    async for piece in archive(store, ROOT, taken_at=TAKEN_AT):
        pieces.append(piece)
        await fill(store, {b"pods/%03d" % number: b'{"n":%d}' % len(pieces) for number in range(0, 60, 7)})
    assert entries(b"".join(pieces)) == before
