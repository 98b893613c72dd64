"""Repair of a damaged data directory: everything before the damage is kept, nothing is thrown away.

    python -m etcd.embedded.repair DATA_DIR

A damaged snapshot is set aside; the one before it and a longer stretch of the log say the same. If the log is
damaged, what it says up to there becomes a new snapshot, a new segment begins after it, and all older files are set
aside. Revisions after the damage were given out once, and clients may remember them. So the repaired store goes on at
a revision that is higher than any that can have been lost, and forgets its history: watches from before must read
anew, as after any compaction.
"""

import argparse
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from etcd.embedded import codec, segment, snapshot
from etcd.embedded.checkpoint import chunks
from etcd.embedded.codec import Commit, Entry
from etcd.embedded.disk import Disk, named, remove_unfinished
from etcd.embedded.frame import find_frame, read_frames
from etcd.embedded.lock import DirectoryLock
from etcd.embedded.mvcc import FIRST_REVISION
from etcd.embedded.recovery import Recovery
from etcd.embedded.segment import create_segment, segment_numbers, segment_path
from etcd.embedded.snapshot import SnapshotWriter, snapshot_path, snapshot_revisions
from etcd.embedded.wal import SEGMENT_BYTES
from etcd.errors import Corrupt, KVError
from etcd.kv import Revision


class Report(Struct, frozen=True, kw_only=True):
    """What was found, and what became of it."""

    damages: Sequence[str]
    kept: Revision
    """Everything up to this revision is there."""
    lost: Revision
    """The newest revision that is known to be lost; `kept` if none is."""
    resumes: Revision
    """The revision that the store is at now."""
    aside: Path | None
    """Where the files went that the store no longer uses."""

    def __str__(self) -> str:
        if self.aside is None:
            return f"nothing is damaged: the store is at revision {self.kept}"
        lines = [*self.damages, f"everything up to revision {self.kept} was kept"]
        if self.resumes == self.kept:
            lines.append("nothing was lost")
        else:
            lines.append(
                f"lost are the revisions from {self.kept + 1} on, of which {self.lost} is the last one found"
            )
            lines.append(f"the store goes on from revision {self.resumes}, without any history")
        lines.append(f"the old files are in {self.aside}")
        return "\n".join(lines)


def repair(directory: Path, disk: Disk | None = None) -> Report:
    """Make a damaged directory one that opens. Refuses, with Corrupt, if there is nothing whole to go on from."""
    lock = DirectoryLock(directory)
    try:
        remove_unfinished(directory)
        return _Repair(directory, disk if disk is not None else Disk()).run()
    finally:
        lock.release()


class _Repair:
    """One run over one directory."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._aside = next(
            path for n in itertools.count(1) if not (path := directory / f"removed-{n}").exists()
        )
        self._damages: list[str] = []

    def run(self) -> Report:
        while True:
            found = Recovery(self._directory)
            try:
                found.run()
            except Corrupt as damage:
                self._damages.append(str(damage))
                path = Path(damage.path)
                if path.suffix != snapshot.SUFFIX:
                    return self._cut_log(found, damage)
                self._set_aside([path])
            else:
                revision = found.core.revision
                return self._report(kept=revision, lost=revision, resumes=revision)

    def _cut_log(self, found: Recovery, damage: Corrupt) -> Report:
        kept = found.core.revision
        if kept == FIRST_REVISION:
            reason = f"{damage.reason}; nothing comes before it that could be kept: restore a copy of the directory"
            raise Corrupt(damage.path, damage.offset, reason)
        behind = _behind(self._directory, damage)
        lost = max((_newest_revision(path) for path in behind), default=kept)
        # No revision takes less than a byte, so nothing that was lost can have been later than this, not even in a
        # segment that is gone.
        resumes = max(kept, lost) + sum(path.stat().st_size for path in behind) + SEGMENT_BYTES
        old = self._files()
        self._begin_anew(found, resumes)
        self._set_aside(old)
        return self._report(kept=kept, lost=max(kept, lost), resumes=resumes)

    def _begin_anew(self, found: Recovery, revision: Revision) -> None:
        """Save what was kept as if it were of a later revision, with an empty segment after it."""
        number = max(segment_numbers(self._directory), default=found.first_segment) + 1
        head = segment.Opening(number=number, first_revision=revision + 1, previous_size=0)
        create_segment(self._disk, self._directory, head)[0].close()
        writer = SnapshotWriter(self._disk, self._directory, snapshot.Opening(revision, number))
        writer.begin()
        for chunk in chunks(found.core.walk(found.core.revision)):
            writer.add(chunk)
        writer.finish((), found.leases)

    def _files(self) -> list[Path]:
        segments = [segment_path(self._directory, number) for number in segment_numbers(self._directory)]
        return segments + [
            snapshot_path(self._directory, revision) for revision in snapshot_revisions(self._directory)
        ]

    def _set_aside(self, paths: Iterable[Path]) -> None:
        with named(self._aside):
            self._aside.mkdir(mode=0o700, exist_ok=True)
            for path in paths:
                path.rename(self._aside / path.name)

    def _report(self, *, kept: Revision, lost: Revision, resumes: Revision) -> Report:
        return Report(
            damages=self._damages,
            kept=kept,
            lost=lost,
            resumes=resumes,
            aside=self._aside if self._damages else None,
        )


def _behind(directory: Path, damage: Corrupt) -> list[Path]:
    """The segment that is damaged, or missing, and those after it: as far as they are there."""
    first = int(Path(damage.path).stem)
    return [segment_path(directory, number) for number in segment_numbers(directory) if number >= first]


def _newest_revision(path: Path) -> Revision:
    """The newest revision in any record of a segment that is still whole; 0 if there is none."""
    with named(path):
        data = path.read_bytes()
    return max((entry.revision for entry in _entries(data) if isinstance(entry, Commit)), default=0)


def _entries(data: bytes) -> Iterator[Entry]:
    offset = find_frame(data, 0)
    while offset is not None:
        for found in read_frames(data, offset):
            offset = found.end
            with suppress(msgspec.DecodeError):  # the segment's opening, which is none
                yield from codec.decode_entries(found.payload)
        offset = find_frame(data, offset)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m etcd.embedded.repair", description=repair.__doc__)
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
