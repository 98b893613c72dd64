"""Compaction removes the history before a revision, and nothing else."""

import pytest

from mockube.etcd.errors import Compacted, FutureRevision
from mockube.etcd.kv import Range, Txn
from tests.support.stores.calls import delete, get, head, keys_of, put, put_each, read_all


async def test_range_before_compact_revision_is_compacted_error(store):
    revision = await put_each(store, b"a", b"b", b"c")
    await store.compact(revision - 1)
    for forgotten in (revision - 2, revision - 3):
        with pytest.raises(Compacted) as refused:
            await read_all(store, revision=forgotten)
        assert (refused.value.requested, refused.value.compact_revision) == (forgotten, revision - 1)


async def test_range_from_compact_revision_on_is_unchanged(store):
    first = await put(store, b"a", b"1")
    await put_each(store, b"b", b"c")
    await put(store, b"a", b"2")
    await delete(store, b"b")
    await put(store, b"a", b"3")
    before = {
        revision: list((await read_all(store, revision=revision)).kvs) for revision in range(first, first + 6)
    }
    for compacted in (first + 2, first + 4, first + 5):
        await store.compact(compacted)
        for revision in range(compacted, first + 6):
            assert list((await read_all(store, revision=revision)).kvs) == before[revision]
    assert list((await read_all(store)).kvs) == before[first + 5]


async def test_compaction_keeps_create_revision_and_version(store):
    created = await put(store, b"a", b"1")
    await put(store, b"a", b"2")
    revision = await put(store, b"a", b"3")
    await store.compact(revision)
    await put(store, b"a", b"4")
    kv = await get(store, b"a")
    assert (kv.create_revision, kv.version) == (created, 4)


async def test_deleted_key_is_absent_at_revision_of_deletion(store):
    await put(store, b"a")
    deleted = await delete(store, b"a")
    await put(store, b"b")
    await store.compact(deleted)
    assert keys_of(await read_all(store, revision=deleted)) == []
    created = await put(store, b"a")
    assert (await get(store, b"a")).create_revision == created


async def test_compaction_does_not_increase_revision(store):
    revision = await put_each(store, b"a", b"b")
    await store.compact(revision)
    assert await head(store) == revision
    assert await put(store, b"a") == revision + 1


async def test_compaction_of_future_revision_is_refused(store):
    revision = await put_each(store, b"a", b"b")
    with pytest.raises(FutureRevision) as refused:
        await store.compact(revision + 1)
    assert (refused.value.requested, refused.value.current) == (revision + 1, revision)
    assert keys_of(await read_all(store, revision=revision - 1)) == [b"a"]


@pytest.mark.parametrize("again", [0, -1], ids=["the same", "an earlier one"])
async def test_compaction_at_or_before_compact_revision_is_refused(store, again):
    revision = await put_each(store, b"a", b"b", b"c")
    await store.compact(revision - 1)
    with pytest.raises(Compacted) as refused:
        await store.compact(revision - 1 + again)
    assert refused.value.compact_revision == revision - 1
    await store.compact(revision)


async def test_range_at_compacted_revision_in_txn_is_compacted_error(store):
    revision = await put_each(store, b"a", b"b", b"c")
    await store.compact(revision)
    with pytest.raises(Compacted):
        await store.txn(Txn(then=[Range(key=b"a", revision=revision - 1)]))


async def test_status_has_compact_revision_if_backend_reports_it(store, backend):
    revision = await put_each(store, b"a", b"b")
    await store.compact(revision)
    assert (await store.status()).compact_revision == (0 if backend.name == "etcd" else revision)
