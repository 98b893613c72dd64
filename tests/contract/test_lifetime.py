"""The status of a store, and its close."""

import asyncio

import pytest

from mockube.etcd.errors import Closed
from mockube.etcd.kv import KV, Delete, Put, Range, Txn, Watch, WatchRequest
from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.stores import backends
from tests.support.stores.backends import embedded_only
from tests.support.stores.calls import put, put_each, watch_all


async def test_store_and_watch_implement_contract(store):
    assert isinstance(store, KV)
    async with await watch_all(store) as watch:
        assert isinstance(watch, Watch)


async def test_status_reports_revision_and_version(store, backend):
    before = await store.status()
    await put_each(store, b"a", b"b")
    after = await store.status()
    name = "memory" if backend.name == "later" else backend.name
    assert (after.backend, after.revision) == (name, before.revision + 2)
    assert after.version
    assert after.size > 0


@embedded_only  # the etcd of these tests has served others before; a later test uses a new one
async def test_new_store_starts_at_revision_1_or_requested_revision(backend):
    assert backend.base == (backends.LATER if backend.name == "later" else 1)


@pytest.mark.etcd
async def test_new_etcd_starts_at_revision_1(etcd_url):
    async with backends.etcd(etcd_url) as backend:
        assert backend.base == 1


async def test_concurrent_requests_succeed(store, backend):
    revisions = await asyncio.gather(*(put(store, b"%d" % number) for number in range(50)))
    assert sorted(revisions) == list(range(backend.base + 1, backend.base + 51))


async def test_requests_to_closed_store_raise_closed(store):
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


async def test_second_close_is_harmless(store):
    await store.close()
    await store.close()


async def test_close_ends_watches(store):
    watch = await watch_all(store)
    waiting = asyncio.create_task(anext(watch))
    await store.close()
    async with asyncio.timeout(WAIT_TIMEOUT):
        with pytest.raises(Closed):
            await waiting
    with pytest.raises(Closed):
        await anext(watch)
    await watch.close()
