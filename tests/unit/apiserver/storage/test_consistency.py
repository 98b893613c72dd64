"""The watch cache is compared with the store: a difference is logged, counted and repaired."""

import asyncio
import contextlib
from collections import Counter

import pytest

from mockube.apiserver.storage import consistency
from mockube.apiserver.storage.consistency import INTERVAL_SECONDS, PAUSE_SECONDS, ConsistencyCheck
from mockube.apiserver.storage.stored_object import read_value
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Unavailable
from mockube.etcd.kv import Delete, Put, Range
from tests.support.event_loop import until, yield_to_loop
from tests.support.stores.wrapped import StoreWithLostEvents

MAPS = b"/registry/configmaps/ns/"
PREFIX = b"/registry/configmaps/"


def value(name):
    return b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%b","uid":"u"}}' % name.encode()


class FailingStore(StoreWithLostEvents):
    fails = False

    async def range(self, request: Range):
        if self.fails:
            raise Unavailable("nobody there")
        return await self.store.range(request)


class CheckedCache:
    def __init__(self):
        self.clock = SteppedClock()
        self.store = FailingStore(MemoryStore(clock=self.clock))
        self.watch_cache = WatchCache(self.store, b"/registry/", clock=self.clock, read=read_value)
        self.resource_cache = self.watch_cache.resource_cache(PREFIX)
        self.resets = []
        self.watch_cache.on_reset.append(lambda: self.resets.append(self.watch_cache.revision))
        self.counts = Counter()
        self.check = ConsistencyCheck(
            self.store, self.watch_cache, clock=self.clock, count=self._count, keys_at_a_time=2
        )

    def _count(self, prefix, status):
        self.counts[prefix, status] += 1

    async def put(self, name, text=None):
        return await self.store.put(Put(key=MAPS + name.encode(), value=text or value(name)))

    async def delete(self, name):
        return await self.store.delete(Delete(key=MAPS + name.encode()))

    async def run_check(self):
        """Run one round of the check, with all of its slices."""
        turn = asyncio.create_task(self.check.turn())
        while not turn.done():
            await yield_to_loop(4)
            self.clock.advance(PAUSE_SECONDS)
        await turn

    def revisions_by_name(self):
        return {stored.key.removeprefix(MAPS).decode(): stored.revision for stored in self.resource_cache}


@pytest.fixture
async def checked_cache():
    cache = CheckedCache()
    async with running_task(cache.watch_cache.run()):
        await cache.watch_cache.progress.wait_listed()
        yield cache
    await cache.store.close()


@contextlib.asynccontextmanager
async def running_task(work):
    task = asyncio.create_task(work)
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_equal_cache_and_store_count_as_success(checked_cache, caplog):
    for name in ("a", "b"):
        await checked_cache.put(name)
    await checked_cache.delete("a")
    await checked_cache.run_check()
    assert checked_cache.counts == {(PREFIX, "success"): 1}
    assert (checked_cache.resets, caplog.records) == ([], [])


async def lose_creation(checked_cache):
    await checked_cache.put("lost")


async def lose_change(checked_cache):
    checked_cache.store.lost = frozenset()
    await checked_cache.put("lost")
    await checked_cache.watch_cache.fresh()
    checked_cache.store.lost = {MAPS + b"lost"}
    await checked_cache.put("lost")


async def lose_deletion(checked_cache):
    checked_cache.store.lost = frozenset()
    await checked_cache.put("lost")
    await checked_cache.watch_cache.fresh()
    checked_cache.store.lost = {MAPS + b"lost"}
    await checked_cache.delete("lost")


@pytest.mark.parametrize("lose", [lose_creation, lose_change, lose_deletion])
async def test_difference_is_logged_counted_and_repaired(checked_cache, caplog, lose):
    await checked_cache.put("a")
    checked_cache.store.lost = {MAPS + b"lost"}
    await lose(checked_cache)
    await checked_cache.watch_cache.fresh()
    before = checked_cache.revisions_by_name()
    await checked_cache.run_check()
    await until(lambda: checked_cache.resets)
    held = (await checked_cache.store.range(Range(key=PREFIX, range_end=PREFIX + b"\xff"))).kvs
    assert (
        checked_cache.revisions_by_name()
        == {kv.key.removeprefix(MAPS).decode(): kv.mod_revision for kv in held}
        != before
    )
    assert checked_cache.counts == {(PREFIX, "failure"): 1}
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [
        "The watch cache differs from the store and is rebuilt: 1 keys differ: /registry/configmaps/ns/lost"
    ]


async def test_cache_follows_changes_after_repair(checked_cache):
    checked_cache.store.lost = {MAPS + b"lost"}
    await checked_cache.put("lost")
    await checked_cache.run_check()
    await until(lambda: checked_cache.resets)
    checked_cache.store.lost = frozenset()
    await checked_cache.put("a")
    await checked_cache.watch_cache.fresh()
    await checked_cache.run_check()
    assert set(checked_cache.revisions_by_name()) == {"a", "lost"}
    assert checked_cache.counts[PREFIX, "success"] == 1


async def test_many_keys_are_compared_in_slices(checked_cache):
    for name in "abcdefg":
        await checked_cache.put(name)
    await checked_cache.watch_cache.fresh()
    checked_cache.store.lost = {MAPS + b"c", MAPS + b"g"}
    for name in "cg":
        await checked_cache.delete(name)
    await checked_cache.watch_cache.fresh()
    turn = asyncio.create_task(checked_cache.run_check())
    await yield_to_loop(4)
    await checked_cache.put("d")  # in a slice that was not read yet
    await checked_cache.put("a")  # in a slice that was read
    await turn
    await until(lambda: checked_cache.resets)
    assert set(checked_cache.revisions_by_name()) == set("abdef")
    assert checked_cache.counts == {(PREFIX, "failure"): 1}


async def test_change_after_read_of_slice_is_no_difference(checked_cache):
    """The watch cache receives later changes while the slice is read."""
    for name in "abc":
        await checked_cache.put(name)
    await checked_cache.watch_cache.fresh()
    page = await checked_cache.store.range(Range(key=PREFIX, range_end=PREFIX + b"\xff", keys_only=True))
    await checked_cache.put("a")
    await checked_cache.delete("b")
    await checked_cache.put("d")
    await checked_cache.watch_cache.fresh()
    compare = consistency._differences
    assert not compare(
        checked_cache.resource_cache,
        (PREFIX, PREFIX + b"\xff"),
        page.kvs,
        page.revision,
        unreadable_revisions={},
    )


async def test_unreadable_value_is_no_difference(checked_cache):
    await checked_cache.put("a")
    await checked_cache.watch_cache.fresh()
    for name in ("a", "never"):
        await checked_cache.put(name, b"no object")
    await checked_cache.watch_cache.fresh()
    await checked_cache.run_check()
    assert checked_cache.counts == {(PREFIX, "success"): 1}


async def test_failed_check_is_counted_and_retried(checked_cache, caplog):
    checked_cache.store.fails = True
    await checked_cache.run_check()
    checked_cache.store.fails = False
    await checked_cache.run_check()
    assert checked_cache.counts == {(PREFIX, "error"): 1, (PREFIX, "success"): 1}
    assert "/registry/configmaps/ could not be checked: nobody there" in caplog.text


async def test_consistency_check_runs_periodically(checked_cache):
    async with running_task(checked_cache.check.run()):
        await yield_to_loop(4)
        for seconds in (INTERVAL_SECONDS - 1, PAUSE_SECONDS):
            checked_cache.clock.advance(seconds)
            await yield_to_loop(4)
        assert not checked_cache.counts
        for seconds in (1, PAUSE_SECONDS):
            checked_cache.clock.advance(seconds)
            await yield_to_loop(4)
        assert checked_cache.counts
