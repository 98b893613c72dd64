"""Snapshot files: valid, or damaged at a reported position."""

import msgspec
import pytest

from mockube.etcd.embedded import frame
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.mvcc import Mvcc
from mockube.etcd.embedded.snapshot import (
    MAGIC,
    SYNC_BYTES,
    SnapshotHeader,
    SnapshotKeys,
    SnapshotTrailer,
    SnapshotWriter,
    read_snapshot,
    snapshot_path,
    snapshot_revisions,
)
from mockube.etcd.errors import Corrupt, NoSpace
from mockube.etcd.kv import Delete, EventKind, KeyValue, Put, Txn
from tests.support.stores.disks import FaultyDisk, HeldDisk


def core_at_revision_5():
    """Return an MVCC core at revision 5, which updated `a`, deleted `b` and created `d`; `c` is unchanged."""
    core = Mvcc()
    core.leases.grant(7, 60, now=0.0)
    core.txn(Txn(then=(Put(key=b"a", value=b"1"),)))
    core.txn(Txn(then=(Put(key=b"b", value=b"2", lease=7),)))
    core.txn(Txn(then=(Put(key=b"c", value=b"3"),)))
    core.txn(
        Txn(
            then=(
                Put(key=b"d", value=b"", lease=7),
                Delete(key=b"b"),
                Put(key=b"a", value=b"\xff" * 9),
            )
        )
    )
    return core


def write_snapshot(directory, core, disk=None):
    writer = SnapshotWriter(disk or Disk(), directory, SnapshotHeader(core.revision, 3))
    writer.begin()
    for kv in core.walk(core.revision):
        writer.add([kv])
    return writer.finish(core.events(core.revision, core.revision)[0], core.leases.ttls())


def test_saved_snapshot_is_read(tmp_path):
    core = core_at_revision_5()
    info = write_snapshot(tmp_path, core)
    snapshot = read_snapshot(snapshot_path(tmp_path, 5))
    assert snapshot.info == info
    assert (info.revision, info.first_segment) == (5, 3)
    assert info.size == snapshot_path(tmp_path, 5).stat().st_size
    assert snapshot.kvs == list(core.walk(5))
    assert snapshot.leases == {7: 60}


def test_snapshot_contains_events_of_its_revision(tmp_path):
    core = core_at_revision_5()
    write_snapshot(tmp_path, core)
    events = read_snapshot(snapshot_path(tmp_path, 5)).events
    assert events == list(core.events(5, 5)[0])
    assert [(e.kind, e.kv.key, e.previous and e.previous.value) for e in events] == [
        (EventKind.PUT, b"d", None),
        (EventKind.DELETE, b"b", b"2"),
        (EventKind.PUT, b"a", b"1"),
    ]


def test_empty_store_can_be_saved(tmp_path):
    writer = SnapshotWriter(Disk(), tmp_path, SnapshotHeader(1, 1))
    writer.begin()
    writer.finish((), {})
    snapshot = read_snapshot(snapshot_path(tmp_path, 1))
    assert (snapshot.kvs, snapshot.events, snapshot.leases) == ([], [], {})


def test_damage_of_snapshot_is_detected_and_located(tmp_path):
    write_snapshot(tmp_path, core_at_revision_5())
    path = snapshot_path(tmp_path, 5)
    content = path.read_bytes()
    flipped = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(len(content))]
    cut = [content[:size] for size in range(len(content))]
    for at, damaged in [*enumerate(flipped), *enumerate(cut)]:
        path.write_bytes(damaged)
        with pytest.raises(Corrupt) as raised:
            read_snapshot(path)
        assert raised.value.path == str(path)
        assert raised.value.offset <= at


def test_bytes_after_last_record_are_damage(tmp_path):
    info = write_snapshot(tmp_path, core_at_revision_5())
    path = snapshot_path(tmp_path, 5)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(Corrupt, match="a damaged record") as raised:
        read_snapshot(path)
    assert (raised.value.path, raised.value.offset) == (str(path), info.size)


SAVED = (b"a", b"1", 2, 2, 1, 0)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        pytest.param(
            [SnapshotHeader(5, 1), SnapshotTrailer(1, (), {})],
            "ends before it is complete",
            id="fewer keys than counted",
        ),
        pytest.param(
            [SnapshotHeader(5, 1), SnapshotKeys([SAVED]), SnapshotTrailer(0, (), {})],
            "ends before it is complete",
            id="more keys than counted",
        ),
        pytest.param(
            [SnapshotHeader(5, 1), (9,), SnapshotTrailer(0, (), {})], "cannot be read", id="unknown record"
        ),
        pytest.param(
            [SnapshotHeader(5, 1), SnapshotKeys([(b"a",)]), SnapshotTrailer(1, (), {})],
            "cannot be read",
            id="partial key",
        ),
    ],
)
def test_snapshot_of_intact_but_invalid_records_is_damaged(tmp_path, records, reason):
    """A checksum says what was written, not that this program understands it."""
    content = MAGIC
    for record in records:
        content += frame.encode(msgspec.msgpack.encode(record), len(content))
    path = snapshot_path(tmp_path, 5)
    path.write_bytes(content)
    with pytest.raises(Corrupt, match=reason) as raised:
        read_snapshot(path)
    assert raised.value.path == str(path)


def test_large_snapshot_is_synced_in_pieces(tmp_path):
    """One long sync at the end would delay the syncs of the log."""
    disk = HeldDisk()
    kv = KeyValue(key=b"a", value=b"x" * (SYNC_BYTES // 3), create_revision=2, mod_revision=2, version=1)
    writer = SnapshotWriter(disk, tmp_path, SnapshotHeader(5, 1))
    writer.begin()
    syncs = []
    for _ in range(10):
        writer.add([kv])
        syncs.append(disk.syncs)
    assert syncs == [number // 3 for number in range(1, 11)]
    writer.abandon()


def test_unfinished_snapshot_has_no_final_name(tmp_path):
    writer = SnapshotWriter(Disk(), tmp_path, SnapshotHeader(5, 1))
    writer.begin()
    writer.add(list(core_at_revision_5().walk(5)))
    assert snapshot_revisions(tmp_path) == []
    writer.abandon()
    assert list(tmp_path.iterdir()) == []


def test_finished_snapshot_cannot_be_abandoned(tmp_path):
    writer = SnapshotWriter(Disk(), tmp_path, SnapshotHeader(5, 1))
    writer.begin()
    writer.finish((), {})
    writer.abandon()
    assert snapshot_revisions(tmp_path) == [5]


def test_full_disk_leaves_no_snapshot(tmp_path):
    disk = FaultyDisk()
    disk.leave_room(60)
    with pytest.raises(NoSpace):
        write_snapshot(tmp_path, core_at_revision_5(), disk)
    assert snapshot_revisions(tmp_path) == []
