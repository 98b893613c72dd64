"""A durable store with restarts and full disks returns the same results as a store in memory."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Compare, Delete, Put, Range, Target, Txn, WatchRequest
from tests.support.event_loop import next_item, until
from tests.support.stores.disks import FaultyDisk
from tests.support.stores.durable import ALL, outcome

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
LEASES = st.sampled_from([1, 2, 3])
PUTS = st.builds(Put, key=KEYS, value=st.binary(max_size=20), lease=st.just(0) | LEASES)
DELETES = st.builds(Delete, key=KEYS, range_end=st.sampled_from([None, b"c", b"z"]))
COMPARES = st.builds(Compare, key=KEYS, target=st.just(Target.VERSION), operand=st.integers(0, 2))
OPERATIONS = PUTS | DELETES
TXNS = st.builds(
    Txn,
    compare=st.lists(COMPARES, max_size=1),
    then=st.lists(OPERATIONS, max_size=3),
    otherwise=st.lists(OPERATIONS, max_size=2),
)
CALLS = st.one_of(
    st.tuples(st.just("txn"), TXNS),
    st.tuples(st.just("put"), PUTS),
    st.tuples(st.just("grant"), st.integers(1, 99), LEASES),
    st.tuples(st.just("revoke"), LEASES),
    st.tuples(st.just("compact"), st.integers(1, 40)),
)
STEPS = st.one_of(
    CALLS,
    CALLS,
    st.tuples(st.just("restart")),
    st.tuples(st.just("disk full"), st.lists(CALLS, min_size=1, max_size=6)),
)


async def all_reads(store):
    """Return the results of every read of the store."""
    status = await store.status()
    leases = [await store.time_to_live(lease, keys=True) for lease in await store.leases()]
    revisions = range(status.compact_revision, status.revision + 1)
    past = [
        await outcome(store.range(Range(key=ALL.key, range_end=ALL.range_end, revision=r))) for r in revisions
    ]
    return status.revision, status.compact_revision, leases, past, await events(store, status)


async def events(store, status):
    first = max(status.compact_revision, 2)
    request = WatchRequest(key=ALL.key, range_end=ALL.range_end, start_revision=first, previous=True)
    seen, revision = [], 0
    async with await store.watch(request) as watch:
        await watch.request_progress()
        while revision < status.revision:
            batch = await next_item(watch)
            seen += batch.events
            revision = batch.revision
    return seen


async def fail_on_full_disk(store, disk, calls):
    """Run calls that depend on each other on a full disk: all are undone."""
    before = (await store.status()).revision
    disk.leave_room(3)
    await asyncio.gather(*(outcome(getattr(store, name)(*arguments)) for name, *arguments in calls))
    disk.leave_room(None)
    assert (await store.status()).revision == before


async def compare_stores(directory, steps, segment_bytes):
    disk = FaultyDisk(fsync=False)

    async def start():
        return await DurableStore.open(
            directory, clock=SteppedClock(), disk=disk, segment_bytes=segment_bytes
        )

    durable, memory = await start(), MemoryStore(clock=SteppedClock())
    for name, *arguments in steps:
        match name:
            case "restart":
                await durable.close()
                durable = await start()
            case "disk full":
                await fail_on_full_disk(durable, disk, *arguments)
            case _:
                answers = [await outcome(getattr(store, name)(*arguments)) for store in (durable, memory)]
                assert repr(answers[0]) == repr(answers[1])  # errors are compared by their messages
    await until(lambda: not durable._in_checkpoint)
    assert await all_reads(durable) == await all_reads(memory)
    await durable.close()
    durable = await start()
    assert await all_reads(durable) == await all_reads(memory)
    await durable.close()
    await memory.close()


@pytest.mark.thorough
@settings(deadline=None)
@given(steps=st.lists(STEPS, max_size=40), segment_bytes=st.sampled_from([1, 100, 1 << 20]))
def test_restarts_and_full_disks_do_not_change_results(steps, segment_bytes):
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(compare_stores(Path(directory), steps, segment_bytes))
