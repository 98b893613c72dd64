"""Recovery at start-up: the state in the files, and contradictory files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.etcd.embedded import codec
from mockube.etcd.embedded.codec import Commit, Compaction, Grant, Revocation
from mockube.etcd.embedded.directory import open_directory
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.recovery import Recovery
from mockube.etcd.embedded.segment import segment_path
from mockube.etcd.embedded.snapshot import SnapshotHeader, SnapshotWriter, snapshot_path
from mockube.etcd.errors import Corrupt, Unavailable
from mockube.etcd.kv import Event, EventKind, KeyValue, Range

PUT_A, PUT_B = (b"a", b"1", 0), (b"b", b"2", 0)
ALL = Range(key=b"\x00", range_end=b"\x00")


def record(directory, *frames, segment_bytes=1 << 20):
    """Append frames of entries to a directory's log."""
    opened = open_directory(directory, Disk(fsync=False), segment_bytes=segment_bytes)
    revision = opened.recovery.core.revision
    for entries in frames:
        opened.log.append(codec.join([codec.encode(entry) for entry in entries]), revision + 1)
        opened.log.sync()
        revision = max([revision, *(e.revision for e in entries if isinstance(e, Commit))])
    opened.log.close()
    opened.lock.release()


def recover(directory):
    recovery = Recovery(directory)
    recovery.run()
    return recovery


def pairs_of(found):
    return [(kv.key, kv.value) for kv in found.core.range(ALL, found.core.revision).kvs]


KEYS = st.binary(min_size=1, max_size=5)
ENTRIES = st.one_of(
    st.builds(
        Commit,
        st.integers(2, 2**62),
        st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=9), st.integers(0, 2**62)), max_size=4),
    ),
    st.builds(Grant, st.integers(1, 2**62), st.integers(1, 9_000_000_000)),
    st.builds(Revocation, st.integers(1, 2**62)),
    st.builds(Compaction, st.integers(1, 2**62)),
)


@given(st.lists(ENTRIES, max_size=8))
def test_separately_encoded_entries_are_decoded_together(entries):
    payload = codec.join([codec.encode(entry) for entry in entries])
    assert codec.decode_entries(memoryview(payload)) == entries


def test_commit_record_has_result_of_each_key():
    kv = KeyValue(key=b"a", value=b"1", create_revision=4, mod_revision=4, version=1, lease=9)
    end = KeyValue(key=b"b", value=b"", create_revision=0, mod_revision=4, version=0)
    events = [Event(kind=EventKind.PUT, kv=kv), Event(kind=EventKind.DELETE, kv=end, previous=kv)]
    assert codec.commit(4, events) == Commit(4, [(b"a", b"1", 9), (b"b", None, 0)])


def test_new_directory_is_empty(tmp_path):
    record(tmp_path)
    found = recover(tmp_path)
    assert (found.core.revision, found.leases, pairs_of(found)) == (1, {}, [])


def test_log_is_replayed(tmp_path):
    record(
        tmp_path,
        [Grant(7, 60), Grant(8, 30), Commit(2, [(b"a", b"1", 7)])],
        [Commit(3, [PUT_B, (b"a", None, 0)]), Revocation(7)],
        [Commit(4, [PUT_A])],
    )
    found = recover(tmp_path)
    assert (found.core.revision, found.leases) == (4, {8: 30})
    assert pairs_of(found) == [(b"a", b"1"), (b"b", b"2")]
    then = found.core.range(Range(key=b"a", revision=2), found.core.revision).kvs
    assert [(kv.value, kv.lease) for kv in then] == [(b"1", 7)]


def test_compaction_is_replayed(tmp_path):
    record(tmp_path, [Commit(2, [PUT_A])], [Commit(3, [PUT_A])], [Compaction(3)], [Compaction(2)])
    core = recover(tmp_path).core
    assert (core.compact_revision, core.first_watchable) == (3, 3)
    assert core.size == 2


def test_log_is_replayed_onto_newest_snapshot(tmp_path):
    record(tmp_path, [Commit(2, [PUT_A])], [Commit(3, [PUT_A]), Grant(7, 60)], segment_bytes=1)
    writer = SnapshotWriter(Disk(), tmp_path, SnapshotHeader(2, 2))
    writer.begin()
    writer.add([KeyValue(key=b"a", value=b"of 2", create_revision=2, mod_revision=2, version=1)])
    writer.finish((), {9: 10})
    found = recover(tmp_path)
    assert (found.core.revision, found.core.compact_revision, found.leases) == (3, 2, {7: 60, 9: 10})
    (kv,) = found.core.range(Range(key=b"a"), 3).kvs
    assert (kv.version, kv.create_revision) == (2, 2)
    assert found.snapshot.first_segment == 2


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        pytest.param([[Commit(3, [PUT_A])]], "revision 3 after 1", id="skipped revision"),
        pytest.param(
            [[Commit(2, [PUT_A])], [Commit(2, [PUT_A])]], "revision 2 after 2", id="duplicate revision"
        ),
        pytest.param(
            [[Commit(2, [(b"a", None, 0)])]],
            "deletes b'a', which does not exist",
            id="deletion of an absent key",
        ),
        pytest.param([[Compaction(2)]], "compaction at 2", id="compaction at a future revision"),
    ],
)
def test_record_that_contradicts_previous_one_is_damage(tmp_path, frames, reason):
    record(tmp_path, *frames)
    with pytest.raises(Corrupt, match=reason):
        recover(tmp_path)


def test_undecodable_record_is_damage(tmp_path):
    opened = open_directory(tmp_path, Disk(), segment_bytes=1 << 20)
    opened.log.append(b"not msgpack", 2)
    opened.log.close()
    with pytest.raises(Corrupt, match=r"00000001\.log: corrupt at byte \d+: an invalid record"):
        recover(tmp_path)


def test_log_without_its_start_is_damage(tmp_path):
    record(tmp_path, [Commit(2, [PUT_A])], [Commit(3, [PUT_A])], segment_bytes=1)
    segment_path(tmp_path, 1).unlink()
    with pytest.raises(Corrupt, match=r"00000001\.log: .* the segment is missing"):
        recover(tmp_path)


def test_snapshot_without_its_log_is_damage(tmp_path):
    writer = SnapshotWriter(Disk(), tmp_path, SnapshotHeader(5, 3))
    writer.begin()
    writer.finish((), {})
    with pytest.raises(Corrupt, match=r"00000003\.log: .* the segment is missing"):
        recover(tmp_path)


def test_unfinished_files_of_crash_are_removed(tmp_path):
    for path in (segment_path(tmp_path, 2), snapshot_path(tmp_path, 5)):
        path.with_name(path.name + ".tmp").write_bytes(b"half of it")
    record(tmp_path, [Commit(2, [PUT_A])])
    assert {path.name for path in tmp_path.iterdir()} == {"LOCK", "00000001.log"}


def test_directory_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="file/data: Not a directory"):
        open_directory(tmp_path / "file" / "data", Disk(), segment_bytes=1)
