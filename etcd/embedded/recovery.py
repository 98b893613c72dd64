"""Recovery: read the state of a store from the files of its data directory, without changing them.

The newest snapshot is loaded, and the log is replayed from the snapshot's position. Each segment must follow the
segment before it, and each revision the revision before it; otherwise the files are `Corrupt`. By then everything
before the damage was replayed, and a repair starts from that state.
"""

import sys
from bisect import bisect_left
from collections.abc import Collection
from pathlib import Path
from typing import Any, assert_never

import msgspec

from mockube.etcd.errors import Corrupt
from mockube.etcd.kv import LeaseId, Revision

from . import codec
from .codec import Commit, Compaction, Entry, Grant, Revocation
from .frame import Frame
from .mvcc import Mvcc
from .segment import FIRST_SEGMENT, SegmentHeader, missing_segment, read_segments
from .snapshot import SnapshotInfo, read_snapshot, snapshot_paths


class Recovery:
    """The recovered state: all of it after `run`, or everything before the damage if `run` raised Corrupt."""

    def __init__(self, directory: Path, *, ignored: Collection[Path] = ()) -> None:
        """`ignored` are snapshots that are known to be damaged."""
        self.directory = directory
        self._ignored = ignored
        self.core = Mvcc()
        self.leases: dict[LeaseId, int] = {}
        """The leases with their TTLs. The state machine gets them after the whole log, which may revoke them."""
        self.notes: list[tuple[Revision, Any]] = []
        """What was noted beside the revisions that can be read, the oldest first."""
        self.snapshot: SnapshotInfo | None = None
        self.headers: list[SegmentHeader] = []
        """The headers of the replayed segments; empty for a new directory."""
        self.end = 0
        """The end of the complete records of the last segment."""

    def run(self) -> None:
        self._load_snapshot()
        for segment in read_segments(self.directory, self.first_segment):
            self.headers.append(segment.header)
            self.end = segment.end
            for frame in segment.frames:
                self._replay(segment.path, frame)
        if self.snapshot is not None and not self.headers:
            raise missing_segment(self.directory, self.first_segment)

    @property
    def first_segment(self) -> int:
        return FIRST_SEGMENT if self.snapshot is None else self.snapshot.first_segment

    def _load_snapshot(self) -> None:
        paths = [path for path in snapshot_paths(self.directory) if path not in self._ignored]
        if paths:
            snapshot = read_snapshot(paths[-1])
            self.snapshot = snapshot.info
            self.core.load(snapshot.info.revision, snapshot.kvs, snapshot.events)
            self.leases.update(snapshot.leases)

    def _replay(self, path: Path, frame: Frame) -> None:
        try:
            for entry in codec.decode_entries(frame.payload):
                self._apply(entry)
        except (msgspec.DecodeError, _ContradictionError) as error:
            raise Corrupt(str(path), frame.offset, f"an invalid record: {error}") from error

    def _apply(self, entry: Entry) -> None:
        match entry:
            case Commit():
                self._commit(entry)
            case Grant(lease, ttl):
                self.leases[lease] = ttl
            case Revocation(lease):
                self.leases.pop(lease, None)
            case Compaction(revision):
                self._compact(revision)
            case _:
                assert_never(entry)

    def _commit(self, commit: Commit) -> None:
        core = self.core
        if self.snapshot is not None and commit.revision <= self.snapshot.revision:
            return  # the snapshot contains it
        if commit.revision != core.revision + 1:
            raise _ContradictionError(f"revision {commit.revision} after {core.revision}")
        for key, value, _ in commit.changes:
            if value is None and core.get(key) is None:
                raise _ContradictionError(f"revision {commit.revision} deletes {key!r}, which does not exist")
        core.replay(commit.changes)
        core.pack(sys.maxsize)  # a history that was below its limit is so after a restart, too
        if commit.note is not None:
            self.notes.append((commit.revision, commit.note))

    def _compact(self, revision: Revision) -> None:
        core = self.core
        if revision > core.revision:
            raise _ContradictionError(f"compaction at {revision}, but the newest revision is {core.revision}")
        if revision > core.compact_revision:
            core.compact(revision)
            core.sweep(revision)
            del self.notes[: bisect_left(self.notes, revision, key=_noted_revision)]


def _noted_revision(note: tuple[Revision, Any]) -> Revision:
    return note[0]


class _ContradictionError(Exception):
    """A record that cannot follow the one before it."""
