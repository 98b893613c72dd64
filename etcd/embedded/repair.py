"""Repair of a damaged data directory: everything before the damage is kept, and no file is deleted.

    python -m mockube.etcd.embedded.repair DATA_DIR

A damaged snapshot is moved aside; the one before it and a longer part of the log contain the same. If the log is
damaged, its contents before the damage become a new snapshot, followed by a new segment, and all older files are moved
aside. Clients may have seen the revisions after the damage, so the repaired store continues at a revision that is
higher than any lost one, and without history: older watches must list again, as after any compaction.
"""

import argparse
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from mockube.etcd.errors import Corrupt, KVError
from mockube.etcd.kv import FIRST_REVISION, Revision

from . import codec, segment, snapshot
from .checkpoint import chunks
from .codec import Commit, Entry
from .disk import Disk, remove_unfinished, store_errors_for
from .frame import find_frame, read_frames
from .lock import DirectoryLock
from .recovery import Recovery
from .segment import create_segment, segment_numbers, segment_paths
from .snapshot import SnapshotWriter, snapshot_paths
from .wal import SEGMENT_BYTES


class Report(Struct, frozen=True, kw_only=True):
    """The damages that were found and the revisions that were kept and lost."""

    problems: Sequence[str]
    kept_revision: Revision
    """Everything up to this revision was kept."""
    lost_revision: Revision
    """The newest revision that is known to be lost; `kept_revision` if there is none."""
    new_revision: Revision
    """The revision of the repaired store."""
    moved_to: Path | None
    """Where the unused files were moved."""

    def __str__(self) -> str:
        if self.moved_to is None:
            return f"no damage was found: the store is at revision {self.kept_revision}"
        lines = [*self.problems, f"everything up to revision {self.kept_revision} was kept"]
        if self.new_revision == self.kept_revision:
            lines.append("nothing was lost")
        else:
            lines.append(f"everything after it is lost, {self._lost_text()}")
            lines.append(f"the store continues at revision {self.new_revision}, without any history")
        lines.append(f"the old files are in {self.moved_to}")
        return "\n".join(lines)

    def _lost_text(self) -> str:
        if self.lost_revision == self.kept_revision:
            return "and none of it can be read"
        return f"at least the revisions {self.kept_revision + 1} to {self.lost_revision}"


def repair(directory: Path, disk: Disk | None = None) -> Report:
    """Make a damaged data directory usable again, unless nothing complete is left to start from (Corrupt)."""
    lock = DirectoryLock(directory)
    try:
        remove_unfinished(directory)
        return _Repair(directory, disk if disk is not None else Disk()).run()
    finally:
        lock.release()


class _Repair:
    """One repair of one directory."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._problems: list[str] = []
        self._unused: list[Path] = []

    def run(self) -> Report:
        while True:
            recovery = Recovery(self._directory, ignored=self._unused)
            try:
                recovery.run()
            except Corrupt as damage:
                self._problems.append(str(damage))
                path = Path(damage.path)
                if path.suffix != snapshot.SUFFIX:
                    return self._cut_log(recovery, damage)
                self._unused.append(path)
            else:
                return self._finish(
                    recovery, lost_revision=recovery.core.revision, new_revision=recovery.core.revision
                )

    def _cut_log(self, recovery: Recovery, damage: Corrupt) -> Report:
        newest_revision = recovery.core.revision
        if newest_revision == FIRST_REVISION:
            reason = f"{damage.reason}; there is no valid data before it: restore the directory from a backup"
            raise Corrupt(damage.path, damage.offset, reason)
        damaged_segments = [
            path for path in segment_paths(self._directory) if path.name >= Path(damage.path).name
        ]
        lost = max([newest_revision, *map(_newest_revision, damaged_segments)])
        # A revision takes at least a byte, so this is at least the newest lost revision, even if it was in a segment that
        # is gone.
        resumes = lost + sum(path.stat().st_size for path in damaged_segments) + SEGMENT_BYTES
        self._unused = segment_paths(self._directory) + snapshot_paths(self._directory)
        self._write_kept_state(recovery, resumes)
        return self._finish(recovery, lost_revision=lost, new_revision=resumes)

    def _write_kept_state(self, recovery: Recovery, revision: Revision) -> None:
        """Save the kept state as a snapshot of a later revision, followed by an empty segment."""
        number = max(segment_numbers(self._directory), default=recovery.first_segment) + 1
        head = segment.SegmentHeader(number=number, first_revision=revision + 1, previous_size=0)
        create_segment(self._disk, self._directory, head)[0].close()
        writer = SnapshotWriter(self._disk, self._directory, snapshot.SnapshotHeader(revision, number))
        writer.begin()
        for chunk in chunks(recovery.core.walk(recovery.core.revision)):
            writer.add(chunk)
        writer.finish((), recovery.leases)

    def _finish(self, recovery: Recovery, *, lost_revision: Revision, new_revision: Revision) -> Report:
        return Report(
            problems=self._problems,
            kept_revision=recovery.core.revision,
            lost_revision=lost_revision,
            new_revision=new_revision,
            moved_to=_set_aside(self._directory, self._unused) if self._unused else None,
        )


def _set_aside(directory: Path, paths: Iterable[Path]) -> Path:
    aside = next(path for n in itertools.count(1) if not (path := directory / f"removed-{n}").exists())
    with store_errors_for(aside):
        aside.mkdir(mode=0o700)
        for path in paths:
            path.rename(aside / path.name)
    return aside


def _newest_revision(path: Path) -> Revision:
    """Return the newest revision in any complete record of a segment; 0 if there is none."""
    with store_errors_for(path):
        data = path.read_bytes()
    return max((entry.revision for entry in _entries(data) if isinstance(entry, Commit)), default=0)


def _entries(data: bytes) -> Iterator[Entry]:
    offset = find_frame(data, 0)
    while offset is not None:
        for frame in read_frames(data, offset):
            offset = frame.end
            with suppress(msgspec.DecodeError):  # the header of the segment, which is no entry
                yield from codec.decode_entries(frame.payload)
        offset = find_frame(data, offset)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m mockube.etcd.embedded.repair", description=repair.__doc__
    )
    parser.add_argument("directory", type=Path, metavar="DATA_DIR")
    try:
        report = repair(parser.parse_args(arguments).directory)
    except KVError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{report}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
