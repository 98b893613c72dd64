"""Restore a store from an archive.

An embedded store is restored in one revision, so that a part is never visible. An etcd needs many transactions: a marker
key exists while they are in progress, and a marker that is found later means that they were interrupted.

A restored key gets a new revision, higher than any earlier one, and a watch that resumes from an old revision receives
all changes. In an embedded store, a key whose value is unchanged is not put again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from mockube.etcd.embedded.mvcc import STEP
from mockube.etcd.embedded.rewriting import yield_to_loop
from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.kv import KV, NO_LEASE, Delete, LeaseId, Put, Range, Revision, Txn, prefix_end

from .lines import Entry, restore_marker_key
from .read import Archive

KEYS_OF_A_LEASE: Final = 1_000
"""The maximum of keys of a lease, as upstream: the end of a lease deletes all of its keys in one revision."""
OPERATIONS: Final = 100
"""The size of one transaction; etcd accepts 128 operations at most."""
BYTES: Final = 1 << 20
"""The limit of keys and values in one transaction; etcd accepts half as much again."""


class NotEmpty(Exception):
    """The store has keys that would be lost."""

    def __init__(self, count: int) -> None:
        super().__init__(f"the store holds {count} objects, which would be lost")
        self.count = count


class RestoreTarget(Struct, frozen=True, kw_only=True):
    """The keys of a store that are restored."""

    root: bytes
    """The prefix of the keys, which may differ from the prefix in the archive."""
    excluded_prefixes: Sequence[bytes] = ()
    """Prefixes below `root` that are not changed: no key is put or deleted there."""

    def of(self, archive: Archive, entry: Entry) -> bytes:
        return self.root + entry.key.removeprefix(archive.root)

    def intervals(self) -> Iterator[tuple[bytes, bytes]]:
        """Return the intervals of keys that are replaced."""
        start = self.root
        for folder in sorted(self.root + folder for folder in self.excluded_prefixes):
            yield start, folder
            start = prefix_end(folder)
        yield start, prefix_end(self.root)

    def excludes(self, key: bytes) -> bool:
        return any(key.startswith(self.root + folder) for folder in self.excluded_prefixes)


async def restore(
    kv: KV, archive: Archive, target: RestoreTarget, *, replace: bool, note: object = None
) -> Revision | None:
    """Return the revision of the restored keys, or None if nothing changed; raise `NotEmpty` for a store with keys, unless `replace`.

    An embedded store keeps the `note` beside the revision.
    """
    if not replace and (count := await _count(kv, target)):
        raise NotEmpty(count)
    if isinstance(kv, EmbeddedStore):
        return await _restore_atomically(kv, archive, target, note)
    return await _restore_in_transactions(kv, archive, target)


async def _count(kv: KV, target: RestoreTarget) -> int:
    counted = [Range(key=key, range_end=end, count_only=True) for key, end in target.intervals()]
    return sum([(await kv.range(interval)).count for interval in counted])


async def _restore_atomically(
    store: EmbeddedStore, archive: Archive, target: RestoreTarget, note: object
) -> Revision | None:
    entries = await asyncio.to_thread(list, archive.entries())
    puts = [put async for put in _puts(store, entries, archive, target)]
    return await store.rewrite(target.root, puts, is_excluded=target.excludes, note=note)


async def _restore_in_transactions(kv: KV, archive: Archive, target: RestoreTarget) -> Revision:
    mark = restore_marker_key(target.root)
    await kv.put(Put(key=mark, value=archive.name.encode()))
    for key, range_end in target.intervals():
        await kv.delete(Delete(key=key, range_end=range_end))
    puts = _puts(kv, archive.entries(), archive, target)
    async for batch in _batches(puts):
        await kv.txn(Txn(then=batch))
    revision = (await kv.delete(Delete(key=mark))).revision
    await kv.compact(revision)
    return revision


async def _puts(
    kv: KV, entries: Iterable[Entry], archive: Archive, target: RestoreTarget
) -> AsyncIterator[Put]:
    leases = _Leases(kv)
    for number, entry in enumerate(entries):
        if number % STEP == 0:
            await yield_to_loop()
        key = target.of(archive, entry)
        if not target.excludes(key):
            yield Put(key=key, value=entry.value, lease=await leases.of(entry.ttl))


async def _batches(puts: AsyncIterator[Put]) -> AsyncIterator[Sequence[Put]]:
    """Yield batches that fit into one transaction."""
    batch: list[Put] = []
    size = 0
    async for put in puts:
        weight = len(put.key) + len(put.value)
        if batch and (len(batch) == OPERATIONS or size + weight > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(put)
        size += weight
    if batch:
        yield batch


class _Leases:
    """The leases of keys that expire, each for many keys with the same TTL. Their time begins at the restore."""

    def __init__(self, kv: KV) -> None:
        self._kv = kv
        self._open: dict[int, tuple[LeaseId, int]] = {}
        """By TTL, the lease for the next key, and how many more keys it may have."""

    async def of(self, ttl: int) -> LeaseId:
        if not ttl:
            return NO_LEASE
        lease, keys_left = self._open.get(ttl, (NO_LEASE, 0))
        if not keys_left:
            lease, keys_left = (await self._kv.grant(ttl)).id, KEYS_OF_A_LEASE
        self._open[ttl] = (lease, keys_left - 1)
        return lease
