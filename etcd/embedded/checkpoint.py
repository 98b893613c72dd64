"""Checkpoints: when a snapshot pays, how it is taken while the store goes on, and what it makes superfluous.

Compaction drops history in memory at once; on disk it is dropped here, a whole segment at a time. A snapshot is
taken once the log that it frees is as long as the snapshot before it, so at most every second byte written to the
disk is a snapshot's.
"""

import logging
from collections.abc import Iterable, Iterator

from mockube.etcd.embedded.directory import DataDirectory
from mockube.etcd.embedded.disk import DiskThread
from mockube.etcd.embedded.group_commit import GroupCommit
from mockube.etcd.embedded.mvcc import Mvcc
from mockube.etcd.embedded.segment import FIRST_SEGMENT, remove_segments_before
from mockube.etcd.embedded.snapshot import Opening, SnapshotInfo, SnapshotWriter, remove_snapshots_before
from mockube.etcd.kv import KeyValue

CHUNK_BYTES = 1024 * 1024
CHUNK_KEYS = 2048
"""A record of a snapshot is made in one go, so it is kept to a few milliseconds' work."""

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
        """Take a snapshot at the compact revision, if it pays. Until that is done nothing may be swept."""
        revision = core.compact_revision
        segment = await commits.thread.call(self._log.first_needed, revision)
        if not await commits.thread.call(self._is_worthwhile, segment):
            return
        older, self._newest = self._newest, await self._write(Opening(revision, segment), core, commits)
        _logger.info("took a snapshot of %d bytes at revision %d", self._newest.size, revision)
        if older is not None:
            await self._thread.call(remove_snapshots_before, self._path, older.revision)
            await self._thread.call(remove_segments_before, self._path, older.first_segment)

    async def close(self) -> None:
        """Return when nothing is being written any more; a snapshot that was cancelled leaves no trace."""
        await self._thread.close()

    def _is_worthwhile(self, segment: int) -> bool:
        if self._newest is None:
            return segment > FIRST_SEGMENT
        first = self._newest.first_segment
        return segment > first and self._log.bytes_between(first, segment) >= self._newest.size

    async def _write(self, opening: Opening, core: Mvcc, commits: GroupCommit) -> SnapshotInfo:
        writer = SnapshotWriter(self._disk, self._path, opening)
        try:
            await self._thread.call(writer.begin)
            for chunk in chunks(core.walk(opening.revision)):
                await self._thread.call(writer.add, chunk)
            events = next(iter(core.events(opening.revision, opening.revision)), ())
            leases = core.leases.ttls()
            await commits.wait_durable()  # the leases in the snapshot must not be ahead of the log
            return await self._thread.call(writer.finish, events, leases)
        except BaseException:
            self._thread.call_later(writer.abandon)
            raise


def chunks(kvs: Iterable[KeyValue]) -> Iterator[list[KeyValue]]:
    """Cut a walk through the keys into pieces for one record each."""
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
