"""Checkpoints: when a snapshot is taken, how it is written while the store runs, and which files it replaces.

Compaction drops history in memory at once; on disk it is dropped here, a whole segment at a time. A snapshot is taken
once the log that it replaces is as long as the last snapshot, so at most half of the bytes written to the disk are
snapshots.
"""

import logging
from collections.abc import Iterable, Iterator

from mockube.etcd.kv import KeyValue

from .directory import DataDirectory
from .disk import DiskThread
from .group_commit import GroupCommit
from .mvcc import Mvcc
from .segment import FIRST_SEGMENT, remove_segments_before
from .snapshot import SnapshotHeader, SnapshotInfo, SnapshotWriter, remove_snapshots_before

CHUNK_BYTES = 1024 * 1024
CHUNK_KEYS = 2048
"""A record of a snapshot is encoded without a pause, so its size is limited to a few milliseconds of work."""

_logger = logging.getLogger(__name__)


class Checkpoints:
    """The snapshots of one store."""

    def __init__(self, directory: DataDirectory) -> None:
        self._path = directory.path
        self._disk = directory.disk
        self._log = directory.log
        self._newest = directory.recovery.snapshot
        self._thread = DiskThread("snapshot")

    async def take(self, core: Mvcc, commits: GroupCommit) -> None:
        """Take a snapshot at the compact revision if it frees enough of the log; no sweep may run meanwhile."""
        revision = core.compact_revision
        segment = await commits.thread.call(self._log.first_needed, revision)
        if not await commits.thread.call(self._is_worthwhile, segment):
            return
        older, self._newest = (
            self._newest,
            await self._write(SnapshotHeader(revision, segment), core, commits),
        )
        _logger.info("took a snapshot of %d bytes at revision %d", self._newest.size, revision)
        if older is not None:
            await self._thread.call(remove_snapshots_before, self._path, older.revision)
            await self._thread.call(remove_segments_before, self._path, older.first_segment)

    async def close(self) -> None:
        """Return when nothing is being written; a cancelled snapshot leaves no file."""
        await self._thread.close()

    def _is_worthwhile(self, segment: int) -> bool:
        if self._newest is None:
            return segment > FIRST_SEGMENT
        first = self._newest.first_segment
        return segment > first and self._log.bytes_between(first, segment) >= self._newest.size

    async def _write(self, header: SnapshotHeader, core: Mvcc, commits: GroupCommit) -> SnapshotInfo:
        writer = SnapshotWriter(self._disk, self._path, header)
        try:
            await self._thread.call(writer.begin)
            for chunk in chunks(core.walk(header.revision)):
                await self._thread.call(writer.add, chunk)
            events = next(iter(core.events(header.revision, header.revision)), ())
            leases = core.leases.ttls()
            await commits.wait_durable()  # the leases in the snapshot must not be ahead of the log
            return await self._thread.call(writer.finish, events, leases)
        except BaseException:
            self._thread.call_later(writer.abandon)
            raise


def chunks(kvs: Iterable[KeyValue]) -> Iterator[list[KeyValue]]:
    """Split an iteration over the keys into batches, one for each record."""
    chunk: list[KeyValue] = []
    size = 0
    for kv in kvs:
        chunk.append(kv)
        size += len(kv.value)
        if size >= CHUNK_BYTES or len(chunk) >= CHUNK_KEYS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
