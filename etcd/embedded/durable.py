"""The embedded store on a disk: a write is acknowledged when it is durable, and a restart recovers all acknowledged
writes.

The state machine is ahead of the disk. A change is applied at once, so that the next one can depend on it; its response
waits for an fsync, which it shares with all changes recorded meanwhile. Reads and watches return the newest durable
revision, which includes every acknowledged write, so they do not wait. If the log cannot be written, the
changes that are not durable are undone and their callers get an error; reads continue, and later writes are tried. If
fsync fails, the content of the disk is unknown, and the store refuses writes until it is restarted.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from mockube.etcd.errors import KVError
from mockube.etcd.kv import Event, Lease, LeaseId, Revision, Status

from . import codec
from .checkpoint import Checkpoints
from .clock import StoreClock
from .directory import DataDirectory, open_directory
from .disk import Disk
from .group_commit import GroupCommit
from .store import UNLIMITED, EmbeddedStore, HistoryLimits, RequestLimits
from .wal import SEGMENT_BYTES

_logger = logging.getLogger(__name__)


class DurableStore(EmbeddedStore):
    """The embedded store on a disk, which `open` opens.

    Leases survive a restart, but their deadlines do not: each lease starts again with its full TTL.
    """

    backend = "durable"

    def __init__(
        self,
        directory: DataDirectory,
        *,
        clock: StoreClock,
        limits: RequestLimits | None = None,
        history: HistoryLimits = UNLIMITED,
    ) -> None:
        recovery = directory.recovery
        super().__init__(clock=clock, core=recovery.core, limits=limits, history=history)
        self._core.restore_leases(recovery.leases, clock.monotonic())
        self._lock = directory.lock
        self._commits = GroupCommit(
            directory.log, self._core.revision, self._hub.publish, on_failure=self._fail
        )
        self._checkpoints = Checkpoints(directory)
        self._in_checkpoint = False
        self._notes = recovery.notes
        self._prepared: list[bytes] = []
        """Changes of the next revision, encoded before the revision is complete."""
        self._set_lease_timers()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: StoreClock,
        limits: RequestLimits | None = None,
        disk: Disk | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        history: HistoryLimits = UNLIMITED,
    ) -> Self:
        """Open a data directory, which is created if it does not exist.

        `Disk(fsync=False)` makes writes faster and less safe: a crash of this process loses nothing, but a crash of
        the kernel or a loss of power can lose writes, or leave a log that must be repaired.
        """
        disk = disk if disk is not None else Disk()
        if not disk.fsync:
            _logger.warning(
                "%s: fsync is disabled: data can be lost or corrupted if the machine crashes", path
            )
        directory = await asyncio.to_thread(open_directory, path, disk, segment_bytes=segment_bytes)
        return cls(directory, clock=clock, limits=limits, history=history)

    async def close(self) -> None:
        if self._closed:
            return
        await super().close()
        await self._checkpoints.close()
        await self._commits.close()
        self._lock.release()

    def take_notes(self) -> Sequence[tuple[Revision, Any]]:
        """Return what earlier processes noted beside the revisions that can be read, the oldest first; once."""
        notes, self._notes = self._notes, []
        return notes

    async def status(self) -> Status:
        status = await super().status()
        problem = self._commits.problem(self._clock.real.monotonic())
        return replace(status, problem=problem) if problem else status

    # --- acknowledgement of writes

    async def _settle(self, note: object = None) -> None:
        revision, head = self._core.revision, self._commits.head
        if revision > head:
            entries = [*self._earlier_commits(head + 1, revision - 1, note), self._newest_commit(note)]
            self._commits.record(entries, head=revision, undo=partial(self._undo, len(entries)))
        await self._commits.wait_durable()

    def _prepare(self, events: Sequence[Event]) -> None:
        super()._prepare(events)
        self._prepared += codec.encode_changes(events)

    def _discard_prepared(self) -> None:
        super()._discard_prepared()
        self._prepared = []

    def _record_grant(self, lease: LeaseId, ttl: int) -> None:
        def undo() -> None:
            self._core.leases.revoke(lease)

        self._commits.record([codec.encode(codec.Grant(lease, ttl))], head=self._commits.head, undo=undo)

    def _record_revocation(self, lease: Lease) -> None:
        revision = self._core.revision
        has_deleted = revision > self._commits.head

        def undo() -> None:
            self._core.leases.grant(lease.id, lease.ttl, self._clock.monotonic())
            if has_deleted:
                self._core.undo()
            self._set_lease_timers()

        entries = [self._newest_commit()] if has_deleted else []
        entries.append(codec.encode(codec.Revocation(lease.id)))
        self._commits.record(entries, head=revision, undo=undo)

    async def _record_compaction(self, revision: Revision) -> None:
        # Nothing to undo: the state machine changes after the log is written.
        entry = codec.encode(codec.Compaction(revision))
        self._commits.record([entry], head=self._commits.head, undo=lambda: None)
        await self._commits.wait_durable()

    def _earlier_commits(self, first: Revision, last: Revision, note: object) -> Iterable[bytes]:
        """Return the records of revisions that take effect together with the newest one."""
        if first > last:
            return ()
        revisions = enumerate(self._core.events(first, last), first)
        return [codec.encode(codec.commit(revision, events, note)) for revision, events in revisions]

    def _undo(self, count: int) -> None:
        for _ in range(count):
            self._core.undo()

    def _newest_commit(self, note: object = None) -> bytes:
        revision = self._core.revision
        if self._prepared:
            prepared, self._prepared = self._prepared, []
            return codec.join_commit(revision, prepared, note)
        (events,) = self._core.events(revision, revision)
        return codec.encode(codec.commit(revision, events, note))

    # --- compaction: free the disk first, then the memory

    def _start_sweep(self) -> None:
        if not self._in_checkpoint:
            self._in_checkpoint = True
            self._spawn(self._take_checkpoint(), "checkpoint")

    async def _take_checkpoint(self) -> None:
        try:
            await self._checkpoints.take(self._core, self._commits)
        except KVError as error:
            _logger.warning("failed to take a snapshot, so the log is not truncated: %s", error)
        finally:
            self._in_checkpoint = False
        super()._start_sweep()

    def _sweep(self) -> None:
        if self._in_checkpoint:
            self._sweeping = None  # the snapshot still reads the history; sweeping resumes after it
        else:
            super()._sweep()
