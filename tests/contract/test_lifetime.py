"""What a store says of itself, and how it ends."""

import asyncio

import pytest

from mockube.etcd.errors import Closed
from mockube.etcd.kv import KV, Delete, Put, Range, Txn, Watch, WatchRequest
from tests.support.stores import backends
from tests.support.stores.backends import embedded_only
from tests.support.stores.calls import put, put_each, watch_all
from tests.support.turns import PATIENCE


async def test_it_is_a_kv(store):
    assert isinstance(store, KV)
    async with await watch_all(store) as watch:
        assert isinstance(watch, Watch)


async def test_status(store, backend):
    before = await store.status()
    await put_each(store, b"a", b"b")
    after = await store.status()
    name = "memory" if backend.name == "later" else backend.name
    assert (after.backend, after.revision) == (name, before.revision + 2)
    assert after.version
    assert after.size > 0


@embedded_only  # the etcd of these tests served others before; a fresh one is asked below
async def test_a_new_store_is_at_revision_1_unless_it_begins_later(backend):
    assert backend.base == (backends.LATER if backend.name == "later" else 1)


@pytest.mark.etcd
async def test_a_new_etcd_is_at_revision_1(etcd_url):
    async with backends.etcd(etcd_url) as backend:
        assert backend.base == 1


async def test_many_at_once(store, backend):
    revisions = await asyncio.gather(*(put(store, b"%d" % number) for number in range(50)))
    assert sorted(revisions) == list(range(backend.base + 1, backend.base + 51))


async def test_a_closed_store_says_so(store):
    await store.close()
    for request in (
        store.range(Range(key=b"a")),
        store.put(Put(key=b"a", value=b"")),
        store.delete(Delete(key=b"a")),
        store.txn(Txn()),
        store.compact(1),
        store.grant(60),
        store.keep_alive(1),
        store.revoke(1),
        store.time_to_live(1),
        store.leases(),
        store.status(),
        store.watch(WatchRequest(key=b"a")),
    ):
        with pytest.raises(Closed):
            await request


async def test_closing_again_is_nothing(store):
    await store.close()
    await store.close()


async def test_closing_a_store_ends_its_watches(store):
    watch = await watch_all(store)
    waiting = asyncio.create_task(anext(watch))
    await store.close()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Closed):
            await waiting
    with pytest.raises(Closed):
        await anext(watch)
    await watch.close()
