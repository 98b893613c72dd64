"""The watch cache delivers a write before its response, and omits values that it cannot read."""

import asyncio

import pytest

from mockube.apiserver.registry.selection import SELECT_ALL
from mockube.apiserver.registry.watch_stream import ClientWatch
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put
from tests.support.event_loop import yield_to_loop
from tests.support.stores.watch_caches import FOLDER, mirroring, put

MANY = 20


@pytest.fixture
async def store():
    store = MemoryStore(clock=SteppedClock())
    yield store
    await store.close()


async def test_watcher_has_a_write_before_it_is_delivered(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache = watch_cache.resource_cache(FOLDER)
        stream = ClientWatch(FOLDER, resource_cache, SELECT_ALL)
        resource_cache.watchers.add(stream)
        stream.resume(watch_cache.revision)
        reader = asyncio.create_task(stream.take())
        await yield_to_loop()
        written = await store.put(put(1))
        await watch_cache.deliver()
        assert [event.change.revision for event in reader.result()] == [written.revision]


async def test_watchers_have_the_writes_of_all_before_they_are_delivered(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        resource_cache = watch_cache.resource_cache(FOLDER)
        stream = ClientWatch(FOLDER, resource_cache, SELECT_ALL)
        resource_cache.watchers.add(stream)
        stream.resume(watch_cache.revision)
        reader = asyncio.create_task(stream.take())
        await yield_to_loop()

        async def write(number):
            written = await store.put(put(number))
            await watch_cache.deliver()
            return written.revision, reader.done()

        answers = await asyncio.gather(*map(write, range(MANY)))
        assert [event.change.revision for event in reader.result()] == [revision for revision, _ in answers]
        assert all(had_event for _, had_event in answers)


async def test_delivery_waits_for_one_iteration_without_a_watcher(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        await yield_to_loop()
        written = await store.put(put(1))
        delivery = watch_cache.deliver()
        delivery.send(None)
        with pytest.raises(StopIteration):
            delivery.send(None)
        assert watch_cache.revision == written.revision


async def test_value_that_is_replaced_by_a_readable_one_is_not_unreadable(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        key = put(1).key
        written = await store.put(Put(key=key, value=b"no object"))
        await watch_cache.wait_reached(written.revision)
        assert watch_cache.unreadable.below(FOLDER) == [key]
        written = await store.put(put(1))
        await watch_cache.wait_reached(written.revision)
        assert watch_cache.unreadable.below(FOLDER) == []
        assert key in watch_cache.resource_cache(FOLDER).objects


async def test_list_forgets_unreadable_values_that_are_gone(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        watch_cache.unreadable.add(FOLDER, put(1).key, 1, ValueError("no object"))
        relisted = asyncio.Event()
        watch_cache.on_reset.append(relisted.set)
        await watch_cache.rebuild()
        await relisted.wait()
        assert not watch_cache.unreadable


async def test_object_of_another_kind_is_unreadable(store):
    async with mirroring(store, SteppedClock()) as watch_cache:
        watch_cache.expect_kind(FOLDER, "ConfigMap", ("v1",))
        secret = Put(key=put(1).key, value=put(1).value.replace(b"ConfigMap", b"Secret"))
        written = await store.put(secret)
        await watch_cache.wait_reached(written.revision)
        assert watch_cache.unreadable.below(FOLDER) == [secret.key]
        assert secret.key not in watch_cache.resource_cache(FOLDER).objects
