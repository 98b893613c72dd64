"""Keys, their versions, and the revision that increases with every change."""

from mockube.etcd.kv import Delete, KeyValue, Put, PutResult
from tests.support.stores.calls import delete, get, head, keys_of, put, put_each, read_all


async def test_put_key_is_returned_by_range(store, backend):
    revision = await put(store, b"a", b"1")
    assert await get(store, b"a") == KeyValue(
        key=b"a", value=b"1", create_revision=revision, mod_revision=revision, version=1
    )
    assert revision == backend.base + 1


async def test_missing_key_is_absent(store, backend):
    assert await get(store, b"a") is None
    assert await head(store) == backend.base


async def test_second_put_increases_version(store, backend):
    created = await put(store, b"a", b"1")
    await put(store, b"b")
    changed = await put(store, b"a", b"2")
    assert await get(store, b"a") == KeyValue(
        key=b"a", value=b"2", create_revision=created, mod_revision=changed, version=2
    )
    assert changed == backend.base + 3


async def test_put_of_same_value_creates_revision(store):
    first = await put(store, b"a", b"1")
    assert await put(store, b"a", b"1") == first + 1
    assert (await get(store, b"a")).version == 2


async def test_recreated_key_starts_at_version_1(store):
    await put_each(store, b"a", b"a", b"a")
    await delete(store, b"a")
    created = await put(store, b"a", b"2")
    assert await get(store, b"a") == KeyValue(
        key=b"a", value=b"2", create_revision=created, mod_revision=created, version=1
    )


async def test_put_returns_previous_value_if_requested(store):
    first = await store.put(Put(key=b"a", value=b"1", previous=True))
    before = await get(store, b"a")
    assert first == PutResult(revision=before.mod_revision, previous=None)
    assert await store.put(Put(key=b"a", value=b"2", previous=True)) == PutResult(
        revision=before.mod_revision + 1, previous=before
    )
    assert (await store.put(Put(key=b"a", value=b"3"))).previous is None


async def test_keys_and_values_may_be_any_bytes(store):
    everything = bytes(range(256))
    await put(store, everything, everything)
    await put(store, b"\x00", b"")
    assert (await get(store, everything)).value == everything
    assert (await get(store, b"\x00")).value == b""


async def test_large_value_is_stored(store):
    value = bytes(1_000_000)
    await put(store, b"a", value)
    assert (await get(store, b"a")).value == value


async def test_delete_removes_key(store, backend):
    await put_each(store, b"a", b"b")
    result = await store.delete(Delete(key=b"a"))
    assert (result.deleted, result.revision, list(result.previous)) == (1, backend.base + 3, [])
    assert keys_of(await read_all(store)) == [b"b"]


async def test_delete_of_missing_key_changes_nothing(store):
    revision = await put(store, b"b")
    for request in (
        Delete(key=b"a", previous=True),
        Delete(key=b"c", range_end=b"z"),
        Delete(key=b"c", range_end=b"b"),
    ):
        result = await store.delete(request)
        assert (result.deleted, result.revision, list(result.previous)) == (0, revision, [])
    assert await head(store) == revision


async def test_delete_of_interval_uses_one_revision(store):
    await put_each(store, b"a", b"b", b"c", b"d")
    before = (await read_all(store)).kvs
    result = await store.delete(Delete(key=b"b", range_end=b"d", previous=True))
    assert result.deleted == 2
    assert list(result.previous) == list(before[1:3])
    assert result.revision == before[-1].mod_revision + 1
    assert keys_of(await read_all(store)) == [b"a", b"d"]


async def test_each_change_increases_revision_by_one(store, backend):
    revisions = [
        await put(store, b"a"),
        await put(store, b"b"),
        await delete(store, b"a", b"c"),
        await put(store, b"a"),
    ]
    assert revisions == [backend.base + 1 + number for number in range(4)]
