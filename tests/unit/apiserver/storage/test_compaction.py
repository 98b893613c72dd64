"""History is compacted one interval later, by only one of the servers that share a store."""

import asyncio
from datetime import UTC, datetime

import pytest

from mockube.apiserver.storage.compaction import KEY, Compactor, HistoryAge
from mockube.apiserver.storage.journal import Author, Journal
from mockube.component_base.clock import ClusterClock, SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import Put, Range, Txn
from tests.support.event_loop import yield_to_loop

INTERVAL = 300.0
AUTHOR = Author(user="alice", verb="update")


@pytest.fixture
async def store():
    store = MemoryStore(clock=SteppedClock())
    yield store
    await store.close()


def compactor(store, clock=None):
    return Compactor(store, clock=clock or SteppedClock(), interval=INTERVAL)


async def oldest(store):
    return (await store.status()).compact_revision


async def test_first_compaction_turn_keeps_history(store):
    before = (await store.put(Put(key=b"k", value=b"1"))).revision
    await compactor(store).turn()
    assert (await store.range(Range(key=b"k", revision=before))).kvs


async def test_count_of_compactions_has_the_server_as_its_author(store):
    journal = Journal()
    one = Compactor(store, clock=SteppedClock(), interval=INTERVAL, journal=journal)
    await one.turn()
    await compactor(store).turn()  # by another server, which only learns the count
    await one.turn()
    (kv,) = (await store.range(Range(key=KEY))).kvs
    assert [entry.revision for entry in journal.entries()] == [kv.create_revision, kv.mod_revision]
    assert journal.author(kv.mod_revision).user == "system:apiserver"


async def test_second_turn_compacts_revision_of_first(store):
    old = (await store.put(Put(key=b"k", value=b"1"))).revision
    await store.put(Put(key=b"k", value=b"2"))
    one = compactor(store)
    await one.turn()
    kept = (await store.status()).revision
    await store.put(Put(key=b"k", value=b"3"))
    await one.turn()
    assert (await store.range(Range(key=b"k", revision=kept))).kvs[0].value == b"2"
    with pytest.raises(Compacted):
        await store.range(Range(key=b"k", revision=old))


async def test_revision_that_the_store_has_compacted_itself_is_no_problem(store):
    one = compactor(store)
    await one.turn()
    await store.put(Put(key=b"k", value=b"1"))
    newest = (await store.put(Put(key=b"k", value=b"2"))).revision
    await store.compact(newest)
    await one.turn()
    assert await oldest(store) == newest


async def test_only_one_of_two_servers_compacts(store):
    one, two = compactor(store), compactor(store)
    for _ in range(4):
        await one.turn()
        await two.turn()
    assert (await store.range(Range(key=KEY))).kvs[0].version == 4


async def test_other_server_continues_compaction(store):
    one, two = compactor(store), compactor(store)
    await one.turn()
    await two.turn()
    await store.put(Put(key=b"k", value=b"v"))
    before = await oldest(store)
    await two.turn()
    await two.turn()
    assert await oldest(store) > before


async def test_compaction_runs_periodically_despite_store_errors(store, running, caplog):
    clock = SteppedClock()
    running(Compactor(store, clock=clock, interval=INTERVAL).run())
    for turn in range(1, 3):
        await yield_to_loop(2)
        clock.advance(INTERVAL)
        await yield_to_loop(4)
        assert (await store.range(Range(key=KEY))).kvs[0].version == turn
    await store.close()
    clock.advance(INTERVAL)
    await yield_to_loop(4)
    assert "retrying in 300 s" in caplog.text


async def test_advance_of_the_clock_uses_up_no_history(store, running):
    real = SteppedClock()
    clock = ClusterClock(real)
    running(compactor(store, clock).run())
    await yield_to_loop(2)
    clock.advance(10 * INTERVAL)
    await yield_to_loop(4)
    assert not (await store.range(Range(key=KEY))).kvs
    real.advance(INTERVAL)
    await yield_to_loop(4)
    assert (await store.range(Range(key=KEY))).kvs[0].version == 1


async def test_history_is_kept_from_the_oldest_revision_that_is_needed(store):
    needed = [(await store.put(Put(key=b"k", value=b"1"))).revision]
    one = Compactor(
        store, clock=SteppedClock(), interval=INTERVAL, oldest_needed=lambda: min(needed, default=None)
    )
    for _ in range(3):
        await store.put(Put(key=b"k", value=b"2"))
        await one.turn()
    assert await oldest(store) == needed[0]
    needed.clear()
    await one.turn()
    assert await oldest(store) > 3


async def test_zero_compaction_interval_disables_it(store):
    await Compactor(store, clock=SteppedClock(), interval=0).run()


@pytest.fixture
async def running():
    """Return a function that runs a coroutine in a task until the test ends."""
    tasks = []
    yield lambda work: tasks.append(asyncio.create_task(work))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_history_older_than_its_age_is_compacted(store):
    clock = SteppedClock()
    journal = Journal(clock)
    limit = HistoryAge(store, journal, clock=clock, seconds=3600)
    written = []
    for _ in range(4):
        put = Txn(then=(Put(key=b"k", value=b"%d" % len(written)),))
        written.append((await journal.commit(store, put, AUTHOR)).revision)
        clock.advance(1800)
    await limit.turn()  # the third is exactly an hour old
    assert await oldest(store) == written[2]
    await limit.turn()
    assert await oldest(store) == written[2]


async def test_age_is_checked_periodically_despite_store_errors(store, running, caplog):
    clock = SteppedClock()
    journal = Journal(clock)
    running(HistoryAge(store, journal, clock=clock, seconds=80).run())
    revision = (await journal.commit(store, Txn(then=(Put(key=b"k", value=b"1"),)), AUTHOR)).revision
    for _ in range(9):
        await yield_to_loop(2)
        clock.advance(10)
    await yield_to_loop(4)
    assert await oldest(store) == revision
    await journal.commit(store, Txn(then=(Put(key=b"k", value=b"2"),)), AUTHOR)
    await store.close()
    for _ in range(9):
        clock.advance(10)
        await yield_to_loop(4)
    assert "retrying in 10 s" in caplog.text


async def test_checks_of_the_age_are_routine(store, running):
    clock = ClusterClock(start=datetime(2030, 1, 1, tzinfo=UTC))
    clock.routine.defer()
    running(HistoryAge(store, Journal(clock), clock=clock, seconds=80).run())
    await yield_to_loop(2)
    assert clock.next_due() is None
    assert clock.routine._timers
