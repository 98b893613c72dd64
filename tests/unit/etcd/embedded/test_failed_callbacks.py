"""An error in a callback that a store leaves to the event loop ends the store's task, and with it the server."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.mvcc import UNPACKED_BYTES
from mockube.etcd.embedded.store import PACK_SECONDS, SWEEP, MemoryStore
from mockube.etcd.kv import Put, WatchRequest
from tests.support.event_loop import until, yield_to_loop

LARGE = 100_000
"""Bytes of a value that the store compresses once it is replaced."""


async def request_progress(store, clock):
    await store.watch(WatchRequest(key=b"a", progress=True))


async def write(store, clock):
    await store.watch(WatchRequest(key=b"a"))
    await store.put(Put(key=b"a", value=b"1"))


async def grant(store, clock):
    await store.grant(1, lease=7)


async def replace_values(store, clock):
    for _ in range(UNPACKED_BYTES // LARGE + 3):
        await store.put(Put(key=b"a", value=b"1" * LARGE))


async def compact_more_than_one_sweep(store, clock):
    for number in range(2 * SWEEP):
        await store.put(Put(key=b"a", value=b"%d" % number))
    await store.compact((await store.status()).revision)


CALLBACKS = {
    "_pack": (replace_values, "_core", PACK_SECONDS),
    "_sweep": (compact_more_than_one_sweep, "_core", 0.0),
    "_notify_progress": (request_progress, "_hub.notify_progress", 600.0),
    "_end_turn": (write, "_hub._woken", 0.0),
    "_expire_leases": (grant, "_tasks", 60.0),
}


def break_attribute(store, place):
    """Replace what the callback uses by something that cannot be used."""
    *path, last = place.split(".")
    for name in path:
        store = getattr(store, name)
    setattr(store, last, 5)


@pytest.mark.parametrize("name", CALLBACKS)
async def test_failed_callback_of_store_is_logged_and_ends_it(name, caplog):
    act, place, seconds = CALLBACKS[name]
    clock = SteppedClock()
    store = MemoryStore(clock=clock)
    supervising = asyncio.create_task(store.supervise())
    await act(store, clock)
    break_attribute(store, place)
    clock.advance(seconds)
    await until(supervising.done)
    assert isinstance(supervising.exception(), TypeError | AttributeError)
    (entry,) = map(caplog.handler.format, caplog.records)
    assert "Traceback (most recent call last)" in entry


@pytest.mark.parametrize("name", [name for name in CALLBACKS if name != "_end_turn"])
async def test_closed_store_leaves_no_callback(name, caplog):
    """Only `_end_turn` is left, which the event loop calls next: writers wait for it."""
    act, place, seconds = CALLBACKS[name]
    clock = SteppedClock()
    store = MemoryStore(clock=clock)
    await act(store, clock)
    await store.close()
    assert clock.next_due() is None
    break_attribute(store, place)
    clock.advance(seconds)
    await yield_to_loop(3)
    assert not caplog.records
