"""Archive the content of a store at one revision while the store runs, page by page to limit the memory."""

import asyncio
import hashlib
import zlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final

from mockube.etcd.errors import LeaseNotFound
from mockube.etcd.kv import HEAD, KV, NO_LEASE, KeyValue, LeaseId, Range, Revision, prefix_end

from .lines import check_restore_complete, entry_line, header_line, trailer_line

PAGE: Final = 2_000
"""The number of keys read at a time."""
LEVEL: Final = 3
"""The level of compression: it saves four fifths of what the highest level saves, in a fifth of its time."""
ENDED: Final = 1
"""The TTL in seconds of a key whose lease has ended meanwhile."""
_GZIP: Final = 16 + zlib.MAX_WBITS
"""The `wbits` of zlib for the gzip format, without a time in its header."""


async def archive(
    kv: KV, root: bytes, *, taken_at: str, revision: Revision = HEAD
) -> AsyncGenerator[bytes, None]:
    """Yield the archive of all keys below `root` at a revision in pieces.

    `Compacted` if history is compacted before it is read, `FutureRevision` if the store is not at the revision yet. A key of
    the past whose lease has ended since then ends soon after it is restored, because only the lease knew its TTL.
    """
    await check_restore_complete(kv, root, revision)
    page = await kv.range(Range(key=root, range_end=prefix_end(root), limit=PAGE, revision=revision))
    revision, ttls, compressor = revision or page.revision, _Ttls(kv), _Compressor()
    compressor.write(header_line(root, revision, taken_at))
    while True:
        granted = await ttls.of(page.kvs)
        yield await asyncio.to_thread(compressor.add, page.kvs, granted)
        if not page.more:
            break
        page = await kv.range(
            Range(key=page.kvs[-1].key + b"\x00", range_end=prefix_end(root), limit=PAGE, revision=revision)
        )
    yield compressor.finish()


class _Ttls:
    """Looks up the granted TTLs of leases: restored keys get the full TTL, as after a restart."""

    def __init__(self, kv: KV) -> None:
        self._kv = kv
        self._ttls: dict[LeaseId, int] = {NO_LEASE: 0}

    async def of(self, kvs: Sequence[KeyValue]) -> Mapping[LeaseId, int]:
        for lease in {kv.lease for kv in kvs} - self._ttls.keys():
            self._ttls[lease] = await self._time_to_live(lease)
        return self._ttls

    async def _time_to_live(self, lease: LeaseId) -> int:
        try:
            return (await self._kv.time_to_live(lease)).ttl
        except LeaseNotFound:
            return ENDED


class _Compressor:
    """Compresses lines and counts them."""

    def __init__(self) -> None:
        self._compress = zlib.compressobj(level=LEVEL, wbits=_GZIP)
        self._digest = hashlib.sha256()
        self._count = 0
        self._ready = b""

    def write(self, lines: bytes) -> None:
        self._digest.update(lines)
        self._ready += self._compress.compress(lines)

    def add(self, kvs: Sequence[KeyValue], ttls: Mapping[LeaseId, int]) -> bytes:
        """Add keys and return the compressed bytes; called in a thread, because zlib releases Python's lock."""
        self.write(b"".join(entry_line(kv, ttls[kv.lease]) for kv in kvs))
        self._count += len(kvs)
        return self._pop_ready()

    def finish(self) -> bytes:
        trailer = trailer_line(self._count, self._digest.hexdigest())
        self._ready += self._compress.compress(trailer) + self._compress.flush()
        return self._pop_ready()

    def _pop_ready(self) -> bytes:
        ready, self._ready = self._ready, b""
        return ready
