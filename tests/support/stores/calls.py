"""Short forms of the contract's calls for tests, and helpers that collect a watch's events."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from mockube.etcd.errors import Closed
from mockube.etcd.kv import (
    FROM_KEY,
    HEAD,
    KV,
    Delete,
    Event,
    KeyValue,
    Put,
    Range,
    RangeResult,
    Revision,
    Txn,
    Watch,
    WatchBatch,
    WatchRequest,
    prefix_end,
)
from tests.support.event_loop import WAIT_TIMEOUT


async def put(store: KV, key: bytes, value: bytes = b"v", **options) -> Revision:
    return (await store.put(Put(key=key, value=value, **options))).revision


async def put_each(store: KV, *keys: bytes) -> Revision:
    """Put keys one after the other, each with its own name as its value; return the last revision."""
    revisions = [await put(store, key, key) for key in keys]
    return revisions[-1]


async def put_all(store: KV, *keys: bytes) -> Revision:
    """Put keys in one revision."""
    return (await store.txn(Txn(then=[Put(key=key, value=key) for key in keys]))).revision


async def delete(store: KV, key: bytes, range_end: bytes | None = None) -> Revision:
    return (await store.delete(Delete(key=key, range_end=range_end))).revision


async def get(store: KV, key: bytes, revision: Revision = HEAD) -> KeyValue | None:
    result = await store.range(Range(key=key, revision=revision))
    return result.kvs[0] if result.kvs else None


async def read_all(store: KV, **options) -> RangeResult:
    return await store.range(Range(key=FROM_KEY, range_end=FROM_KEY, **options))


async def read_prefix(store: KV, prefix: bytes, **options) -> RangeResult:
    return await store.range(Range(key=prefix, range_end=prefix_end(prefix), **options))


async def head(store: KV) -> Revision:
    return (await read_all(store, count_only=True)).revision


def keys_of(result: RangeResult) -> list[bytes]:
    return [kv.key for kv in result.kvs]


async def watch_prefix(store: KV, prefix: bytes, **options) -> Watch:
    return await store.watch(WatchRequest(key=prefix, range_end=prefix_end(prefix), **options))


async def watch_all(store: KV, **options) -> Watch:
    return await store.watch(WatchRequest(key=FROM_KEY, range_end=FROM_KEY, **options))


async def batches_until(watch: Watch, revision: Revision) -> list[WatchBatch]:
    """Return what a watch delivers until it has delivered everything up to a revision."""
    batches: list[WatchBatch] = []
    async with asyncio.timeout(WAIT_TIMEOUT):
        while not batches or batches[-1].revision < revision:
            batches.append(await anext(watch))
    return batches


async def batches_so_far(store: KV, watch: Watch) -> list[WatchBatch]:
    """Return everything that a watch must have delivered by now."""
    newest = await head(store)
    with suppress(Closed):  # it ended by itself, and iteration raises the reason
        await watch.request_progress()
    return await batches_until(watch, newest)


async def events_so_far(store: KV, watch: Watch) -> list[Event]:
    return events_of(await batches_so_far(store, watch))


def events_of(batches: Sequence[WatchBatch]) -> list[Event]:
    return [event for batch in batches for event in batch.events]


def summary(events: Sequence[Event]) -> list[tuple[str, bytes, Revision]]:
    return [(event.kind.value, event.kv.key, event.kv.mod_revision) for event in events]
