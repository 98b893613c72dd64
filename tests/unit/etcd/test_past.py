"""A KV at a past revision: it reads as then, and refuses every change."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Closed, Compacted, FutureRevision, Unsupported
from mockube.etcd.kv import KV, Delete, Put, Range, Txn, Watch, WatchRequest
from mockube.etcd.past import PastKV
from tests.support.event_loop import yield_to_loop

ALL = Range(key=b"k", range_end=b"l")


@pytest.fixture
async def store():
    store = MemoryStore(clock=SteppedClock())
    for number in range(5):
        await store.put(Put(key=b"k%d" % number, value=b"%d" % number))
    yield store
    await store.close()


async def test_reads_are_those_of_the_revision(store):
    past = PastKV(store, 3)
    assert isinstance(past, KV)
    answer = await past.range(ALL)
    assert ([kv.key for kv in answer.kvs], answer.count, answer.revision) == ([b"k0", b"k1"], 2, 3)
    limited = await past.range(Range(key=b"k", range_end=b"l", limit=1))
    assert (len(limited.kvs), limited.count, limited.more) == (1, 2, True)
    assert [kv.key for kv in (await past.range(Range(key=b"k", range_end=b"l", revision=2))).kvs] == [b"k0"]
    assert (await past.status()).revision == 3
    with pytest.raises(FutureRevision):
        await past.range(Range(key=b"k0", revision=4))
    await store.compact(5)
    with pytest.raises(Compacted):
        await past.range(ALL)


async def test_every_change_is_refused(store):
    past = PastKV(store, 3)
    put = Put(key=b"k", value=b"")
    for change in (
        past.put(put),
        past.delete(Delete(key=b"k0")),
        past.txn(Txn(then=(put,))),
        past.compact(3),
        past.grant(5),
        past.keep_alive(1),
        past.revoke(1),
        past.time_to_live(1, keys=True),
    ):
        with pytest.raises(Unsupported, match="at revision 3 is the past"):
            await change
    await past.close()
    assert (await store.status()).revision == 6
    assert await past.leases() == ()


async def test_watch_idles_until_it_is_closed(store):
    async with await PastKV(store, 3).watch(WatchRequest(key=b"k", range_end=b"l")) as watch:
        assert isinstance(watch, Watch)
        waiting = asyncio.create_task(anext(watch))
        await store.put(Put(key=b"k0", value=b"x"))
        await yield_to_loop(5)
        assert (waiting.done(), watch.take_pending(9)) == (False, None)
        await watch.request_progress()
        batch = await waiting
        assert (batch.revision, batch.events) == (3, ())
        waiting = asyncio.create_task(anext(watch, None))
        await yield_to_loop(2)
    assert await waiting is None
    assert [batch async for batch in watch] == []
    with pytest.raises(Closed):
        await watch.request_progress()
