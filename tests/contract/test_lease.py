"""Leases: keys that exist as long as a client keeps their lease alive."""

import pytest

from mockube.etcd.errors import InvalidRequest, LeaseExists, LeaseNotFound
from mockube.etcd.kv import Delete, Put, Txn
from tests.support.stores.backends import embedded_only
from tests.support.stores.calls import (
    batches_until,
    delete,
    events_of,
    events_so_far,
    get,
    head,
    keys_of,
    put,
    put_each,
    read_all,
    summary,
    watch_all,
)

SHORT = 3
"""A TTL in seconds. A real etcd grants at least 2, and a slow machine must be able to use it."""
LONG = 600


async def test_granted_lease_has_ttl_and_no_keys(store, backend):
    lease = await store.grant(LONG)
    assert lease.id > 0
    assert lease.ttl == LONG
    assert LONG - 60 < lease.remaining <= LONG
    assert list(await store.leases()) == [lease.id]
    assert await head(store) == backend.base


async def test_granted_leases_have_different_ids(store):
    await store.grant(LONG, 3)
    granted = {(await store.grant(LONG)).id for _ in range(5)}
    assert len(granted) == 5
    assert set(await store.leases()) == {3, *granted}


async def test_lease_can_be_granted_with_chosen_id(store):
    assert (await store.grant(LONG, 7)).id == 7
    with pytest.raises(LeaseExists):
        await store.grant(LONG, 7)
    assert (await store.grant(LONG)).id != 7


@pytest.mark.parametrize("ttl", [0, -1, 10**10])
async def test_ttl_out_of_bounds_is_refused(store, ttl):
    with pytest.raises(InvalidRequest):
        await store.grant(ttl)
    assert list(await store.leases()) == []


async def test_time_to_live_lists_keys_of_lease(store):
    lease, other = await store.grant(LONG), await store.grant(LONG)
    await put(store, b"b", lease=lease.id)
    await put(store, b"a", lease=lease.id)
    await put(store, b"c", lease=other.id)
    found = await store.time_to_live(lease.id, keys=True)
    assert (found.id, found.ttl, sorted(found.keys)) == (lease.id, LONG, [b"a", b"b"])
    assert LONG - 60 < found.remaining <= LONG
    assert list((await store.time_to_live(lease.id)).keys) == []
    assert (await get(store, b"a")).lease == lease.id


async def test_put_moves_key_to_other_lease(store):
    first, second = await store.grant(LONG), await store.grant(LONG)
    for lease in (first.id, second.id, 0):
        await put(store, b"a", lease=lease)
        assert (await get(store, b"a")).lease == lease
        held = {
            each.id: list((await store.time_to_live(each.id, keys=True)).keys) for each in (first, second)
        }
        assert held == {first.id: [b"a"] * (lease == first.id), second.id: [b"a"] * (lease == second.id)}


async def test_delete_detaches_key_from_lease(store):
    lease = await store.grant(LONG)
    await put(store, b"a", lease=lease.id)
    await delete(store, b"a")
    assert list((await store.time_to_live(lease.id, keys=True)).keys) == []
    await put(store, b"a")
    await store.revoke(lease.id)
    assert await get(store, b"a") is not None


async def test_revoke_deletes_keys_in_one_revision(store):
    lease = await store.grant(LONG)
    for key in (b"c", b"a", b"b"):
        await put(store, key, lease=lease.id)
    newest = await put(store, b"d")
    before = {kv.key: kv for kv in (await read_all(store)).kvs}
    async with await watch_all(store, previous=True) as watch:
        await store.revoke(lease.id)
        assert keys_of(await read_all(store)) == [b"d"]
        events = await events_so_far(store, watch)
        assert summary(events) == [("DELETE", key, newest + 1) for key in (b"a", b"b", b"c")]
        assert [event.previous for event in events] == [before[key] for key in (b"a", b"b", b"c")]
    assert list(await store.leases()) == []


async def test_revoke_of_lease_without_keys_keeps_revision(store):
    lease = await store.grant(LONG)
    await put(store, b"a", lease=lease.id)
    newest = await put(store, b"a")
    await store.revoke(lease.id)
    assert await head(store) == newest
    assert keys_of(await read_all(store)) == [b"a"]


async def test_requests_for_unknown_lease_are_refused(store):
    lease = await store.grant(LONG)
    await store.revoke(lease.id)
    newest = await head(store)
    for request in (
        store.revoke(lease.id),
        store.keep_alive(lease.id),
        store.time_to_live(lease.id),
        store.put(Put(key=b"a", value=b"", lease=lease.id)),
        store.txn(Txn(then=[Delete(key=b"b"), Put(key=b"a", value=b"", lease=lease.id)])),
    ):
        with pytest.raises(LeaseNotFound):
            await request
    assert await head(store) == newest


async def test_lease_id_can_be_reused_after_revoke(store):
    await store.grant(LONG, 7)
    await store.revoke(7)
    await store.grant(LONG, 7)
    await put(store, b"a", lease=7)
    assert list((await store.time_to_live(7, keys=True)).keys) == [b"a"]


async def test_past_revision_keeps_lease_of_key(store):
    lease = await store.grant(LONG)
    revision = await put(store, b"a", lease=lease.id)
    await store.revoke(lease.id)
    assert (await get(store, b"a", revision)).lease == lease.id


@pytest.mark.slow
async def test_expired_lease_deletes_keys_in_one_revision(backend, store):
    lease = await store.grant(SHORT)
    await put(store, b"b", lease=lease.id)
    await put(store, b"a", lease=lease.id)
    newest = await put(store, b"c")
    async with await watch_all(store) as watch:
        await backend.let_expire(SHORT + 1)
        events = events_of(await batches_until(watch, newest + 1))
        assert summary(events) == [("DELETE", b"a", newest + 1), ("DELETE", b"b", newest + 1)]
    assert keys_of(await read_all(store)) == [b"c"]
    assert list(await store.leases()) == []
    with pytest.raises(LeaseNotFound):
        await store.keep_alive(lease.id)


@pytest.mark.slow
async def test_kept_alive_lease_outlives_other(backend, store):
    kept, left = await store.grant(LONG), await store.grant(SHORT)
    await put(store, b"kept", lease=kept.id)
    newest = await put(store, b"left", lease=left.id)
    async with await watch_all(store) as watch:
        await backend.let_expire(SHORT + 1)
        assert summary(events_of(await batches_until(watch, newest + 1))) == [("DELETE", b"left", newest + 1)]
    renewed = await store.keep_alive(kept.id)
    assert (renewed.id, renewed.ttl) == (kept.id, LONG)
    assert LONG - 60 < renewed.remaining <= LONG
    assert keys_of(await read_all(store)) == [b"kept"]


@pytest.mark.slow
async def test_leases_expire_separately_each_with_own_revision(backend, store):
    first, second = await store.grant(SHORT), await store.grant(SHORT + 1)
    for lease in (first, second):
        newest = await put(store, b"%d" % lease.id, lease=lease.id)
    async with await watch_all(store) as watch:
        for lease, wait in ((first, SHORT), (second, 1)):
            newest += 1
            await backend.let_expire(wait)
            events = events_of(await batches_until(watch, newest))
            assert summary(events) == [("DELETE", b"%d" % lease.id, newest)]


@embedded_only  # a real etcd uses its own clock, which a test cannot step
async def test_keep_alive_restarts_ttl(backend, store):
    lease = await store.grant(10)
    await put(store, b"a", lease=lease.id)
    for _ in range(3):
        await backend.pass_time(9)
        assert (await store.time_to_live(lease.id)).remaining == 1
        assert (await store.keep_alive(lease.id)).remaining == 10
    async with await watch_all(store) as watch:
        newest = await head(store)
        await backend.pass_time(9.5)
        assert keys_of(await read_all(store)) == [b"a"]
        await backend.pass_time(0.5)
        assert summary(events_of(await batches_until(watch, newest + 1))) == [("DELETE", b"a", newest + 1)]


async def test_revoke_keeps_keys_detached_from_lease(backend, store):
    lease = await store.grant(LONG)
    await put(store, b"a", lease=lease.id)
    newest = await put_each(store, b"a", b"b")
    await store.revoke(lease.id)
    assert (keys_of(await read_all(store)), await head(store)) == ([b"a", b"b"], newest)
