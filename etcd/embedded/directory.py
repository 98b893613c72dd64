"""A data directory: its lock, and its files when it is opened.

LOCK                         locked by the process that has opened the directory
00000001.log …               the log's segments
0000000000000042.snapshot    all keys at a revision
*.tmp                        unfinished files of a crashed process; removed
"""

from pathlib import Path

from msgspec import Struct

from mockube.etcd.kv import FIRST_REVISION, Revision

from . import snapshot as snapshots
from .disk import Disk, remove_unfinished, store_errors_for
from .lock import DirectoryLock
from .recovery import Recovery
from .segment import FIRST_SEGMENT, SegmentHeader, create_segment, segment_paths
from .snapshot import SnapshotWriter, snapshot_paths
from .wal import Log


class DataDirectory(Struct, frozen=True, kw_only=True):
    """An open data directory and the state that was recovered from it."""

    path: Path
    disk: Disk
    lock: DirectoryLock
    log: Log
    recovery: Recovery


def open_directory(path: Path, disk: Disk, *, segment_bytes: int) -> DataDirectory:
    """Lock a directory, which is created if it does not exist, and recover its state; raise Locked or Corrupt."""
    lock = take_directory(path)
    try:
        remove_unfinished(path)
        recovery = Recovery(path)
        recovery.run()
        if recovery.headers:
            headers, end = recovery.headers, recovery.end
        else:
            headers, end = _begin_log(path, disk)
        log = Log(disk, path, headers, end=end, segment_bytes=segment_bytes)
    except BaseException:
        lock.release()
        raise
    return DataDirectory(path=path, disk=disk, lock=lock, log=log, recovery=recovery)


def is_new(path: Path) -> bool:
    """Return whether the directory contains no store."""
    return not path.is_dir() or not (segment_paths(path) or snapshot_paths(path))


def create_after(path: Path, revision: Revision, disk: Disk) -> None:
    """Create a store without keys in a new directory; its revisions continue after the given one."""
    lock = take_directory(path)
    try:
        assert is_new(path), "clients may know its revisions"
        remove_unfinished(path)
        headers, _ = _begin_log(path, disk)
        snapshot = SnapshotWriter(disk, path, snapshots.SnapshotHeader(revision, headers[0].number))
        try:
            snapshot.begin()
            snapshot.finish((), {})
        except BaseException:
            snapshot.abandon()
            raise
    finally:
        lock.release()


def take_directory(path: Path) -> DirectoryLock:
    with store_errors_for(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return DirectoryLock(path)


def _begin_log(path: Path, disk: Disk) -> tuple[list[SegmentHeader], int]:
    header = SegmentHeader(number=FIRST_SEGMENT, first_revision=FIRST_REVISION + 1, previous_size=0)
    file, end = create_segment(disk, path, header)
    file.close()
    return [header], end
