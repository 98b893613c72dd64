"""Compaction: history before a revision is forgotten, and nothing else."""

import pytest

from mockube.etcd.errors import Compacted, FutureRevision
from mockube.etcd.kv import Range, Txn
from tests.support.stores.calls import delete, get, head, keys_of, put, put_each, read_all


async def test_before_the_revision_nothing_can_be_read(store):
    revision = await put_each(store, b"a", b"b", b"c")
    await store.compact(revision - 1)
    for forgotten in (revision - 2, revision - 3):
        with pytest.raises(Compacted) as refused:
            await read_all(store, revision=forgotten)
        assert (refused.value.requested, refused.value.compact_revision) == (forgotten, revision - 1)


async def test_from_the_revision_on_all_is_as_it_was(store):
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


async def test_a_key_keeps_its_history_in_numbers(store):
    created = await put(store, b"a", b"1")
    await put(store, b"a", b"2")
    revision = await put(store, b"a", b"3")
    await store.compact(revision)
    await put(store, b"a", b"4")
    kv = await get(store, b"a")
    assert (kv.create_revision, kv.version) == (created, 4)


async def test_a_deleted_key_is_gone_at_the_revision_of_its_deletion(store):
    await put(store, b"a")
    deleted = await delete(store, b"a")
    await put(store, b"b")
    await store.compact(deleted)
    assert keys_of(await read_all(store, revision=deleted)) == []
    created = await put(store, b"a")
    assert (await get(store, b"a")).create_revision == created


async def test_compaction_makes_no_revision(store):
    revision = await put_each(store, b"a", b"b")
    await store.compact(revision)
    assert await head(store) == revision
    assert await put(store, b"a") == revision + 1


async def test_the_future_cannot_be_compacted(store):
    revision = await put_each(store, b"a", b"b")
    with pytest.raises(FutureRevision) as refused:
        await store.compact(revision + 1)
    assert (refused.value.requested, refused.value.current) == (revision + 1, revision)
    assert keys_of(await read_all(store, revision=revision - 1)) == [b"a"]


@pytest.mark.parametrize("again", [0, -1], ids=["the same", "an earlier one"])
async def test_what_is_compacted_cannot_be_compacted_again(store, again):
    revision = await put_each(store, b"a", b"b", b"c")
    await store.compact(revision - 1)
    with pytest.raises(Compacted) as refused:
        await store.compact(revision - 1 + again)
    assert refused.value.compact_revision == revision - 1
    await store.compact(revision)


async def test_a_transaction_cannot_read_what_is_forgotten(store):
    revision = await put_each(store, b"a", b"b", b"c")
    await store.compact(revision)
    with pytest.raises(Compacted):
        await store.txn(Txn(then=[Range(key=b"a", revision=revision - 1)]))


async def test_status_tells_where_history_begins_if_the_backend_knows(store, backend):
    revision = await put_each(store, b"a", b"b")
    await store.compact(revision)
    assert (await store.status()).compact_revision == (0 if backend.name == "etcd" else revision)
