"""Watches from the current revision: events, their order and their contents."""

import asyncio

import pytest

from mockube.etcd.errors import InvalidRequest
from mockube.etcd.kv import (
    FROM_KEY,
    Delete,
    Event,
    EventKind,
    KeyValue,
    Put,
    Txn,
    WatchRequest,
    prefix_end,
)
from tests.support.event_loop import WAIT_TIMEOUT, next_item
from tests.support.stores.calls import (
    batches_so_far,
    batches_until,
    delete,
    events_of,
    events_so_far,
    get,
    put,
    put_all,
    put_each,
    summary,
    watch_all,
    watch_prefix,
)

KEYS = (b"a", b"a/1", b"a/2", b"a0", b"b", b"\xff")


async def test_watch_delivers_put_and_delete(store, backend):
    async with await store.watch(WatchRequest(key=b"a")) as watch:
        await put(store, b"a", b"1")
        kv = await get(store, b"a")
        assert await events_so_far(store, watch) == [Event(kind=EventKind.PUT, kv=kv)]
        deleted = await delete(store, b"a")
        tombstone = KeyValue(key=b"a", value=b"", create_revision=0, mod_revision=deleted, version=0)
        assert await events_so_far(store, watch) == [Event(kind=EventKind.DELETE, kv=tombstone)]


@pytest.mark.parametrize(
    ("key", "range_end", "seen"),
    [
        pytest.param(b"a", None, [b"a"], id="one key"),
        pytest.param(b"a/", None, [], id="key that never exists"),
        pytest.param(b"a/", prefix_end(b"a/"), [b"a/1", b"a/2"], id="a prefix"),
        pytest.param(b"a", prefix_end(b"a"), [b"a", b"a/1", b"a/2", b"a0"], id="a prefix that is a key"),
        pytest.param(b"a/1", b"b", [b"a/1", b"a/2", b"a0"], id="an interval without its end"),
        pytest.param(b"a0", FROM_KEY, [b"a0", b"b", b"\xff"], id="from a key on"),
        pytest.param(FROM_KEY, FROM_KEY, list(KEYS), id="everything"),
    ],
)
async def test_watch_delivers_only_keys_of_interval(store, key, range_end, seen):
    async with await store.watch(WatchRequest(key=key, range_end=range_end)) as watch:
        first = await put_each(store, *KEYS) - len(KEYS) + 1
        last = await delete(store, FROM_KEY, FROM_KEY)
        expected = [("PUT", each, first + KEYS.index(each)) for each in seen]
        expected += [("DELETE", each, last) for each in seen]
        assert summary(await events_so_far(store, watch)) == expected


async def test_watch_without_start_revision_skips_past_events(store):
    await put_each(store, b"a", b"b")
    async with await watch_all(store) as watch:
        revision = await put(store, b"c")
        assert summary(await events_so_far(store, watch)) == [("PUT", b"c", revision)]


async def test_watch_misses_no_change_after_it_is_created(store):
    watches = [await watch_all(store) for _ in range(5)]
    revision = await put(store, b"a")
    for watch in watches:
        assert summary(events_of(await batches_until(watch, revision))) == [("PUT", b"a", revision)]
        await watch.close()


async def test_watch_delivers_previous_values_if_requested(store):
    async with (
        await watch_all(store, previous=True) as with_previous,
        await watch_all(store) as without_previous,
    ):
        await put(store, b"a", b"1")
        first = await get(store, b"a")
        await put(store, b"a", b"2")
        second = await get(store, b"a")
        await delete(store, b"a")
        await put(store, b"a", b"3")
        events = await events_so_far(store, with_previous)
        assert [event.previous for event in events] == [None, first, second, None]
        assert [event.previous for event in await events_so_far(store, without_previous)] == [None] * 4


async def test_previous_value_ignores_earlier_operation_of_same_txn(store):
    await put(store, b"b", b"0")
    before = await get(store, b"b")
    async with await watch_all(store, previous=True) as watch:
        await store.txn(Txn(then=[Put(key=b"a", value=b"1"), Put(key=b"b", value=b"1")]))
        assert [event.previous for event in await events_so_far(store, watch)] == [None, before]


async def test_revision_is_delivered_in_one_batch_in_operation_order(store):
    await put_each(store, b"a", b"b", b"c")
    async with await watch_all(store) as watch:
        result = await store.txn(
            Txn(then=[Put(key=b"z", value=b""), Delete(key=b"a", range_end=b"c"), Put(key=b"c", value=b"")])
        )
        batches = [batch for batch in await batches_so_far(store, watch) if batch.events]
        assert len(batches) == 1
        assert summary(batches[0].events) == [
            ("PUT", b"z", result.revision),
            ("DELETE", b"a", result.revision),
            ("DELETE", b"b", result.revision),
            ("PUT", b"c", result.revision),
        ]
        assert batches[0].revision >= result.revision


async def test_watch_of_interval_gets_its_part_of_revision(store):
    async with await watch_prefix(store, b"a/") as watch:
        revision = await put_all(store, b"b", b"a/2", b"c", b"a/1")
        assert summary(await events_so_far(store, watch)) == [
            ("PUT", b"a/2", revision),
            ("PUT", b"a/1", revision),
        ]


async def test_large_revisions_are_not_split(store):
    keys = [b"%03d" % number for number in range(100)]
    async with await watch_all(store) as watch:
        revisions = [await put_all(store, *keys) for _ in range(5)]
        batches = await batches_until(watch, revisions[-1])
        expected = [("PUT", key, revision) for revision in revisions for key in keys]
        assert summary(events_of(batches)) == expected
        held = [
            revision for batch in batches for revision in {event.kv.mod_revision for event in batch.events}
        ]
        assert len(held) == len(set(held))


async def test_batches_are_ordered_and_carry_their_revision(store):
    async with await watch_prefix(store, b"a/") as watch:
        for number in range(20):
            await put_each(store, b"a/%d" % number, b"b")
        batches = await batches_so_far(store, watch)
        reached = [batch.revision for batch in batches]
        assert reached == sorted(reached)
        for batch in batches:
            assert all(event.kv.mod_revision <= batch.revision for event in batch.events)
        assert len(events_of(batches)) == 20


async def test_watches_do_not_affect_each_other(store):
    async with await watch_prefix(store, b"a/") as one, await watch_prefix(store, b"a/") as two:
        await put(store, b"a/1")
        assert len(await events_so_far(store, one)) == 1
        await one.close()
        await put(store, b"a/2")
        assert len(await events_so_far(store, two)) == 2


async def test_blocked_watch_is_woken_by_event(store):
    async with await watch_all(store) as watch:
        waiting = asyncio.create_task(next_item(watch))
        revision = await put(store, b"a")
        assert summary((await waiting).events) == [("PUT", b"a", revision)]


async def test_iteration_stops_after_close(store):
    watch = await watch_all(store)
    await put(store, b"a")
    await watch.close()
    assert [batch async for batch in watch] == []
    await watch.close()


async def test_close_unblocks_reader_of_watch(store):
    watch = await watch_all(store)
    waiting = asyncio.create_task(collect(watch))
    await watch.close()
    async with asyncio.timeout(WAIT_TIMEOUT):
        assert await waiting == []


async def collect(watch):
    return [batch async for batch in watch]


@pytest.mark.parametrize("key", [b"", b"a"])
async def test_watch_of_empty_interval_is_refused(store, key):
    with pytest.raises(InvalidRequest):
        async with await store.watch(WatchRequest(key=key, range_end=b"a")):
            pass
