"""Watches from a past revision, and progress: a client resumes after a lost connection without gaps."""

import asyncio

import pytest

from mockube.etcd.errors import Compacted
from mockube.etcd.kv import HEAD, WatchRequest
from tests.support.event_loop import next_item
from tests.support.stores.backends import embedded_only
from tests.support.stores.calls import (
    batches_so_far,
    batches_until,
    delete,
    events_of,
    events_so_far,
    get,
    head,
    put,
    put_all,
    put_each,
    summary,
    watch_all,
    watch_prefix,
)


async def test_watch_from_past_revision_delivers_later_events(store):
    first = await put(store, b"a", b"1")
    await put_each(store, b"b", b"a")
    await delete(store, b"a")
    async with await watch_all(store, start_revision=first + 1) as watch:
        newest = await put(store, b"c")
        events = await events_so_far(store, watch)
        assert summary(events) == [
            ("PUT", b"b", first + 1),
            ("PUT", b"a", first + 2),
            ("DELETE", b"a", first + 3),
            ("PUT", b"c", newest),
        ]
        assert all(event.previous is None for event in events)


async def test_past_events_are_filtered_and_have_previous_values(store):
    base = await put(store, b"a/1", b"0")
    before = await get(store, b"a/1")
    await put_all(store, b"a/2", b"b", b"a/1")
    await delete(store, b"a/", b"c")
    async with await watch_prefix(store, b"a/", start_revision=base + 1, previous=True) as watch:
        events = await events_so_far(store, watch)
        assert summary(events) == [
            ("PUT", b"a/2", base + 1),
            ("PUT", b"a/1", base + 1),
            ("DELETE", b"a/1", base + 2),
            ("DELETE", b"a/2", base + 2),
        ]
        assert [event.previous for event in events] == [None, before, events[1].kv, events[0].kv]


async def test_resumed_watch_neither_loses_nor_repeats_events(store):
    async with await watch_all(store, previous=True) as watch:
        for number in range(6):
            await put_all(store, b"a", b"b%d" % number)
        last = await delete(store, b"a", b"c")
        events = await events_so_far(store, watch)
    for seen in range(last - 7, last + 1):
        async with await watch_all(store, start_revision=seen + 1, previous=True) as resumed:
            assert await events_so_far(store, resumed) == [e for e in events if e.kv.mod_revision > seen]


async def test_long_past_is_delivered_before_progress(store):
    base = await head(store)
    await asyncio.gather(*(put_each(store, *[b"%d" % writer] * 180) for writer in range(25)))
    async with await watch_all(store, start_revision=base + 1) as watch:
        batches = await batches_until(watch, base + 4_500)
    assert [event.kv.mod_revision for event in events_of(batches)] == list(range(base + 1, base + 4_501))
    delivered = base
    for batch in batches:
        delivered += len(batch.events)
        assert batch.revision == delivered


async def test_watch_from_future_revision_waits_for_it(store):
    revision = await put(store, b"a")
    async with await watch_all(store, start_revision=revision + 3) as watch:
        last = await put_each(store, b"b", b"c", b"d", b"e")
        batches = await batches_until(watch, last)
        assert summary(events_of(batches)) == [("PUT", b"d", revision + 3), ("PUT", b"e", revision + 4)]
        assert all(batch.events for batch in batches)


# --- compaction


async def test_watch_from_compacted_revision_reports_compact_revision(store):
    revision = await put_each(store, b"a", b"b", b"c", b"d")
    await store.compact(revision - 1)
    watch = await watch_all(store, start_revision=revision - 2)
    with pytest.raises(Compacted) as refused:
        await next_item(watch)
    assert (refused.value.requested, refused.value.compact_revision) == (revision - 2, revision - 1)
    with pytest.raises(Compacted):
        await next_item(watch)
    await watch.close()


async def test_watch_can_start_at_compact_revision(store):
    revision = await put_each(store, b"a", b"b", b"c")
    await store.compact(revision - 1)
    async with await watch_all(store, start_revision=revision - 1) as watch:
        assert summary(await events_so_far(store, watch)) == [
            ("PUT", b"b", revision - 1),
            ("PUT", b"c", revision),
        ]


@embedded_only  # etcd 3.5.1 loses this deletion; later releases do not
async def test_watch_at_compact_revision_delivers_deletion(store):
    await put(store, b"a")
    deleted = await delete(store, b"a")
    await store.compact(deleted)
    async with await watch_all(store, start_revision=deleted) as watch:
        assert summary(await events_so_far(store, watch)) == [("DELETE", b"a", deleted)]


async def test_compaction_does_not_end_running_watch(store):
    async with await watch_all(store) as watch:
        revision = await put_each(store, b"a", b"b")
        assert len(await events_so_far(store, watch)) == 2
        await store.compact(revision)
        newest = await delete(store, b"a")
        assert summary(await events_so_far(store, watch)) == [("DELETE", b"a", newest)]


async def test_compacted_previous_value_is_omitted_or_correct(store):
    await put(store, b"a", b"1")
    before = await get(store, b"a")
    revision = await put(store, b"a", b"2")
    await store.compact(revision)
    newest = await put(store, b"a", b"3")
    async with await watch_all(store, start_revision=revision, previous=True) as watch:
        first, second = await events_so_far(store, watch)
    assert first.previous in (None, before)
    assert second.previous == first.kv
    assert (first.kv.mod_revision, second.kv.mod_revision) == (revision, newest)


# --- progress


async def test_requested_progress_reaches_current_revision(store):
    await put(store, b"a/1")
    async with await watch_prefix(store, b"a/") as watch:
        newest = await put_each(store, b"b", b"c")
        await watch.request_progress()
        batches = await batches_until(watch, newest)
        assert events_of(batches) == []
        assert batches[-1].revision == newest


async def test_progress_never_precedes_events(store):
    async with await watch_prefix(store, b"a/") as watch:
        for number in range(20):
            revision = await put(store, b"a/%d" % number)
            await watch.request_progress()
            batches = await batches_until(watch, revision)
            assert summary(events_of(batches)) == [("PUT", b"a/%d" % number, revision)]


async def test_progress_requested_during_past_events_follows_them(store):
    base = await head(store)
    await put_each(store, *(b"a/%d" % number for number in range(50)))
    newest = await put(store, b"b")
    async with await watch_prefix(store, b"a/", start_revision=base + 1) as watch:
        await watch.request_progress()
        assert len(events_of(await batches_until(watch, newest))) == 50


async def test_watch_without_past_events_reports_progress(store):
    base = await head(store)
    newest = await put_each(store, b"b", b"c")
    async with await watch_prefix(store, b"a/", start_revision=base + 1) as watch:
        await watch.request_progress()
        assert events_of(await batches_until(watch, newest)) == []


async def test_watch_can_resume_from_progress_revision(store):
    async with await watch_prefix(store, b"a/") as watch:
        await put_each(store, b"a/1", b"b", b"c")
        reached = (await batches_so_far(store, watch))[-1].revision
    newest = await put_each(store, b"b", b"a/2")
    async with await watch_prefix(store, b"a/", start_revision=reached + 1) as resumed:
        assert summary(await events_so_far(store, resumed)) == [("PUT", b"a/2", newest)]


async def test_periodic_progress_is_delivered_if_requested(backend, store):
    async with await store.watch(WatchRequest(key=b"a", progress=True)) as watch:
        newest = await put(store, b"b")
        await backend.let_expire(3600)
        batches = await batches_until(watch, newest)
        assert events_of(batches) == []


@pytest.mark.parametrize("start", [HEAD, 1], ids=["from now on", "from the past"])
async def test_periodic_progress_is_not_delivered_unless_requested(backend, store, start):
    newest = await put(store, b"b")
    request = WatchRequest(key=b"a", start_revision=start and newest)
    async with await store.watch(request) as quiet:
        await backend.let_expire(3600)
        newest = await put(store, b"a")
        batch = await next_item(quiet)
        assert summary(batch.events) == [("PUT", b"a", newest)]
