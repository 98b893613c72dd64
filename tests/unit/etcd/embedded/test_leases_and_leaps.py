"""Leases, when the clock leaps over a time in which nothing else is due."""

import asyncio

import pytest

from mockube.component_base.clock import ClusterClock, SteppedClock, advance_in_steps
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import LeaseNotFound
from mockube.etcd.kv import Put, Range
from tests.support.event_loop import yield_to_loop

TTL = 15
HOUR = 3600.0


class Turns:
    """Waits for some iterations of the loop: a renewal takes a few."""

    async def wait(self, _clock):
        await yield_to_loop(5)


@pytest.fixture
def clock():
    return ClusterClock(SteppedClock())


@pytest.fixture
async def store(clock):
    store = MemoryStore(clock=clock)
    yield store
    await store.close()


async def lease_of(store, key):
    lease = (await store.grant(TTL)).id
    await store.put(Put(key=key, value=b"", lease=lease))
    return lease


async def exists(store, key):
    return bool((await store.range(Range(key=key))).kvs)


async def advance(clock, seconds):
    await advance_in_steps(clock, seconds, Turns(), lambda: True)


async def test_leap_goes_beyond_the_time_of_a_lease_that_is_renewed(store, clock):
    lease = await lease_of(store, b"/server")

    async def renew():
        while True:
            await store.keep_alive(lease)
            await clock.renewals.sleep(10)

    renewing = asyncio.create_task(renew())
    await yield_to_loop(5)
    await advance(clock, HOUR)
    assert [(leap.end - leap.start).total_seconds() for leap in clock.leaps] == [HOUR]
    assert await exists(store, b"/server")
    renewing.cancel()
    await advance(clock, 2 * TTL)
    assert not await exists(store, b"/server")
    with pytest.raises(LeaseNotFound):
        await store.keep_alive(lease)


async def test_leap_ends_before_a_lease_without_renewals_expires(store, clock):
    await lease_of(store, b"/event")
    await advance(clock, TTL - 1)
    assert await exists(store, b"/event")
    await advance(clock, 2)
    assert not await exists(store, b"/event")
