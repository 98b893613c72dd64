"""Write and read snapshots: files with all keys at one revision, which replace the log before it.

A snapshot is `magic | header frame | frames of keys | trailer frame`. It gets its name only when it is complete and
durable, so an incomplete one was damaged later. It is taken at the compact revision, because the history after that
must stay readable and is replayed from the log. Two snapshots are kept, and the log from the older one on, so that no
data is lost if the newest is damaged.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from mockube.etcd.errors import Corrupt
from mockube.etcd.kv import Event, EventKind, KeyValue, LeaseId, Revision

from . import frame
from .disk import Disk, NewFile, numbers_in_names, store_errors_for
from .frame import Frame

MAGIC = b"mockube snapshot 1\n"

SYNC_BYTES = 4 * 1024 * 1024
"""The interval of syncs in bytes: one long sync at the end would delay the syncs of the log."""

SUFFIX = ".snapshot"

_NAME = re.compile(r"(\d{16})" + re.escape(SUFFIX))

_Saved: TypeAlias = tuple[bytes, bytes, Revision, Revision, int, LeaseId]


class SnapshotHeader(Struct, frozen=True, array_like=True, tag=1):
    revision: Revision
    first_segment: int
    """This segment and the later ones contain everything after the revision."""


class SnapshotKeys(Struct, frozen=True, array_like=True, tag=2):
    """A part of the keys; the keys of all such records together are in byte order."""

    saved: Sequence[_Saved]


class SnapshotTrailer(Struct, frozen=True, array_like=True, tag=3):
    count: int
    """The number of all keys."""
    changed: Sequence[tuple[bytes, _Saved | None]]
    """The keys that the revision changed, in its order, each with its previous version: a watch may start there."""
    leases: Mapping[LeaseId, int]
    """The leases that existed when the snapshot was closed, with their TTLs. The log is replayed from an earlier time,
    but the last record of a lease agrees with this table, so replaying the log over the table gives the right one.
    """


class SnapshotInfo(Struct, frozen=True, kw_only=True):
    """Describes a snapshot that is on the disk."""

    revision: Revision
    first_segment: int
    size: int


class Snapshot(Struct, frozen=True, kw_only=True):
    """The content of a snapshot file."""

    info: SnapshotInfo
    kvs: Sequence[KeyValue]
    events: Sequence[Event]
    leases: Mapping[LeaseId, int]


_Record: TypeAlias = SnapshotHeader | SnapshotKeys | SnapshotTrailer
_records: msgspec.msgpack.Decoder[_Record] = msgspec.msgpack.Decoder(_Record)


def snapshot_path(directory: Path, revision: Revision) -> Path:
    return directory / f"{revision:016d}{SUFFIX}"


def snapshot_revisions(directory: Path) -> list[Revision]:
    """Return the revisions of the existing snapshots, in order."""
    return numbers_in_names(directory, _NAME)


def snapshot_paths(directory: Path) -> list[Path]:
    """Return the paths of the existing snapshots, the oldest first."""
    return [snapshot_path(directory, revision) for revision in snapshot_revisions(directory)]


def remove_snapshots_before(directory: Path, revision: Revision) -> None:
    for old in snapshot_revisions(directory):
        if old < revision:
            path = snapshot_path(directory, old)
            with store_errors_for(path):
                path.unlink()


class SnapshotWriter:
    """A snapshot that is being written. Every call may block on the disk; only one thread at a time may call it."""

    def __init__(self, disk: Disk, directory: Path, header: SnapshotHeader) -> None:
        self._disk = disk
        self._path = snapshot_path(directory, header.revision)
        self._header = header
        self._file: NewFile | None = None
        self._count = 0
        self._size = 0
        self._synced = 0

    def begin(self) -> None:
        self._file = NewFile(self._disk, self._path)
        self._write(MAGIC)
        self._record(self._header)

    def add(self, kvs: Sequence[KeyValue]) -> None:
        """Save the next keys, in byte order."""
        self._count += len(kvs)
        self._record(SnapshotKeys([_save(kv) for kv in kvs]))

    def finish(self, events: Sequence[Event], leases: Mapping[LeaseId, int]) -> SnapshotInfo:
        """Complete the snapshot and give the file its name."""
        changed = [(e.kv.key, None if e.previous is None else _save(e.previous)) for e in events]
        self._record(SnapshotTrailer(self._count, changed, leases))
        assert self._file is not None, "begin first"
        self._file.publish()
        self._file.close()
        return SnapshotInfo(
            revision=self._header.revision, first_segment=self._header.first_segment, size=self._size
        )

    def abandon(self) -> None:
        """Remove the unfinished file, unless the snapshot was finished."""
        if self._file is not None:
            self._file.discard()

    def _record(self, record: _Record) -> None:
        self._write(frame.encode(msgspec.msgpack.encode(record), self._size))

    def _write(self, data: bytes) -> None:
        assert self._file is not None, "begin first"
        self._file.write(data, self._size)
        self._size += len(data)
        if self._size - self._synced >= SYNC_BYTES:
            self._file.sync()
            self._synced = self._size


def read_snapshot(path: Path) -> Snapshot:
    with store_errors_for(path):
        data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise Corrupt(str(path), 0, f"a snapshot of format 1 begins with {MAGIC!r}")
    frames = list(frame.read_frames(data, len(MAGIC)))
    end = frames[-1].end if frames else len(MAGIC)
    if end != len(data):
        raise Corrupt(str(path), end, "a damaged record")
    records = [_decode(path, record_frame) for record_frame in frames]
    kvs = [_load(saved) for record in records if isinstance(record, SnapshotKeys) for saved in record.saved]
    match records:
        case [SnapshotHeader() as header, *_, SnapshotTrailer(count) as trailer] if count == len(kvs):
            return _snapshot(header, kvs, trailer, size=end)
        case _:
            raise Corrupt(str(path), end, "the snapshot ends before it is complete")


def _decode(path: Path, record_frame: Frame) -> _Record:
    try:
        return _records.decode(record_frame.payload)
    except msgspec.DecodeError as error:
        raise Corrupt(str(path), record_frame.offset, f"a record that cannot be read: {error}") from error


def _snapshot(
    header: SnapshotHeader, kvs: Sequence[KeyValue], trailer: SnapshotTrailer, *, size: int
) -> Snapshot:
    kvs_by_key = {kv.key: kv for kv in kvs}
    events = [
        _event(kvs_by_key.get(key), key, header.revision, None if saved is None else _load(saved))
        for key, saved in trailer.changed
    ]
    info = SnapshotInfo(revision=header.revision, first_segment=header.first_segment, size=size)
    return Snapshot(info=info, kvs=kvs, events=events, leases=trailer.leases)


def _event(kv: KeyValue | None, key: bytes, revision: Revision, previous: KeyValue | None) -> Event:
    if kv is not None:
        return Event(kind=EventKind.PUT, kv=kv, previous=previous)
    tombstone = KeyValue(key=key, value=b"", create_revision=0, mod_revision=revision, version=0)
    return Event(kind=EventKind.DELETE, kv=tombstone, previous=previous)


def _save(kv: KeyValue) -> _Saved:
    return (kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease)


def _load(saved: _Saved) -> KeyValue:
    key, value, created, modified, version, lease = saved
    return KeyValue(
        key=key,
        value=value,
        create_revision=created,
        mod_revision=modified,
        version=version,
        lease=lease,
    )
