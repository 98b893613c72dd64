"""The write-ahead log as files: appended records are read again, and a torn tail is distinguished from damage."""

from itertools import pairwise

import pytest

from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.segment import (
    MAGIC,
    SegmentHeader,
    create_segment,
    read_segments,
    remove_segments_before,
    segment_numbers,
    segment_path,
)
from mockube.etcd.embedded.wal import Log
from mockube.etcd.errors import Corrupt, Interrupted, NoSpace, Unavailable
from tests.support.stores.disks import FaultyDisk, HeldDisk

PAYLOADS = [b"first", b"second record", b"", b"the last"]
SMALL = 40
"""The size of a segment in bytes: two of these records fill it."""


@pytest.fixture
def disk():
    return FaultyDisk()


def new_log(directory, disk=None, **options):
    header = SegmentHeader(number=1, first_revision=2, previous_size=0)
    file, end = create_segment(disk or Disk(), directory, header)
    file.close()
    return Log(disk or Disk(), directory, [header], end=end, **options)


def reopen(directory, disk=None):
    segments = list(read_segments(directory, 1))
    return Log(disk or Disk(), directory, [s.header for s in segments], end=segments[-1].end)


def write(log, payloads=PAYLOADS):
    for revision, payload in enumerate(payloads, 2):
        log.append(payload, revision)
        log.sync()


def payloads(directory):
    return [bytes(frame.payload) for segment in read_segments(directory, 1) for frame in segment.frames]


def payloads_before_damage(directory):
    """Return the payloads before the damage and its position, or None if there is no damage except a torn tail."""
    found = []
    try:
        for segment in read_segments(directory, 1):
            found += [bytes(frame.payload) for frame in segment.frames]
    except Corrupt as damage:
        return found, (damage.path, damage.offset)
    return found, None


def offsets(directory, number=1):
    (segment,) = [s for s in read_segments(directory, 1) if s.header.number == number]
    return [frame.offset for frame in segment.frames] + [segment.end]


def test_reopened_log_is_read_and_appended(tmp_path):
    write(new_log(tmp_path))
    write(reopen(tmp_path), [b"more"])
    assert payloads(tmp_path) == [*PAYLOADS, b"more"]


def test_reopened_log_is_synced_before_append(tmp_path):
    write(new_log(tmp_path))  # the state after a killed process
    disk = HeldDisk()
    reopen(tmp_path, disk)
    assert disk.syncs == 1


def test_full_segment_is_followed_by_linked_segment(tmp_path):
    write(new_log(tmp_path, segment_bytes=SMALL))
    segments = list(read_segments(tmp_path, 1))
    assert payloads(tmp_path) == PAYLOADS
    assert len(segments) > 1
    for before, after in pairwise(segments):
        assert after.header.previous_size == before.size >= SMALL
        assert after.header.first_revision == before.header.first_revision + len(before.frames)


def test_truncated_log_is_read_to_last_whole_record_and_continues(tmp_path):
    write(new_log(tmp_path))
    path, ends = segment_path(tmp_path, 1), offsets(tmp_path)
    content = path.read_bytes()
    for size in range(ends[0], len(content) + 1):
        path.write_bytes(content[:size])
        whole = sum(1 for end in ends[1:] if end <= size)
        assert payloads(tmp_path) == PAYLOADS[:whole]
        write(reopen(tmp_path), [b"after the cut"])
        assert payloads(tmp_path) == [*PAYLOADS[:whole], b"after the cut"]


@pytest.mark.parametrize(
    "tail", [bytes(1), bytes(5000), b"\xf5log" + bytes(500)], ids=["zero", "zeros", "mark"]
)
def test_preallocated_tail_is_truncated(tmp_path, tail, caplog):
    write(new_log(tmp_path))
    path = segment_path(tmp_path, 1)
    content = path.read_bytes()
    path.write_bytes(content + tail)
    reopen(tmp_path)
    assert path.read_bytes() == content
    assert f"truncated an incomplete record of {len(tail)} bytes at byte {len(content)}" in caplog.text


def test_flipped_byte_is_located_or_truncates_last_record(tmp_path):
    write(new_log(tmp_path))
    path, starts = segment_path(tmp_path, 1), [len(MAGIC), *offsets(tmp_path)[:-1]]
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :])
        found, damage = payloads_before_damage(tmp_path)
        if at >= starts[-1]:
            assert (found, damage) == (PAYLOADS[:-1], None)
        else:
            damaged = max((start for start in starts if start <= at), default=0)
            assert damage == (str(path), damaged)
            assert found == PAYLOADS[: max(starts.index(damaged) - 1, 0) if damaged else 0]


@pytest.mark.parametrize("number", [1, 2])
def test_flipped_byte_of_earlier_segment_is_damage(tmp_path, number):
    write(new_log(tmp_path, segment_bytes=SMALL))
    assert segment_numbers(tmp_path)[-1] > 2
    path = segment_path(tmp_path, number)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        found, damage = payloads_before_damage(tmp_path)
        assert damage is not None
        assert damage[0] == str(path)
        assert found == PAYLOADS[: len(found)]


def test_truncated_earlier_segment_is_damage(tmp_path):
    write(new_log(tmp_path, segment_bytes=SMALL))
    path = segment_path(tmp_path, 1)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        found, damage = payloads_before_damage(tmp_path)
        assert damage is not None
        assert damage[0] == str(path)
        assert found == PAYLOADS[: len(found)]


def test_extended_earlier_segment_is_damage(tmp_path):
    write(new_log(tmp_path, segment_bytes=SMALL))
    path = segment_path(tmp_path, 1)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + bytes(7))
    assert payloads_before_damage(tmp_path)[1] == (str(path), size)


def test_missing_segment_is_named(tmp_path):
    write(new_log(tmp_path, segment_bytes=SMALL))
    segment_path(tmp_path, 2).unlink()
    with pytest.raises(Corrupt, match=r"00000002\.log: corrupt at byte 0: the segment is missing"):
        payloads(tmp_path)


def test_segment_with_other_number_is_damage(tmp_path):
    write(new_log(tmp_path))
    segment_path(tmp_path, 1).rename(segment_path(tmp_path, 2))
    with pytest.raises(Corrupt, match="has the header of segment 1"):
        list(read_segments(tmp_path, 2))


def test_full_disk_leaves_log_unchanged(tmp_path, disk):
    log = new_log(tmp_path, disk)
    write(log)
    content = segment_path(tmp_path, 1).read_bytes()
    disk.leave_room(10)
    with pytest.raises(NoSpace, match=r"00000001\.log: No space left on device"):
        log.append(b"too much for the room", 6)
    assert segment_path(tmp_path, 1).read_bytes() == content
    disk.leave_room(None)
    write(log, [b"later"])
    assert payloads(tmp_path) == [*PAYLOADS, b"later"]


def test_full_disk_leaves_no_partial_segment(tmp_path, disk):
    log = new_log(tmp_path, disk, segment_bytes=1)
    disk.leave_room(10)
    with pytest.raises(NoSpace):
        log.append(b"in a new segment", 2)
    assert segment_numbers(tmp_path) == [1]
    disk.leave_room(None)
    write(log)
    assert payloads(tmp_path) == PAYLOADS


def test_io_error_is_not_no_space(tmp_path, disk):
    log = new_log(tmp_path, disk)
    disk.write_error = 5
    with pytest.raises(Unavailable, match="Input/output error"):
        log.append(b"x", 2)


def test_failed_write_that_cannot_be_truncated_has_unknown_outcome(tmp_path, disk):
    log = new_log(tmp_path, disk)
    disk.leave_room(3)
    disk.cut_error = 5
    with pytest.raises(Interrupted, match="could not be undone"):
        log.append(b"x", 2)


def test_failed_fsync_has_unknown_outcome(tmp_path, disk):
    log = new_log(tmp_path, disk)
    log.append(b"x", 2)
    disk.sync_error = 5
    with pytest.raises(Interrupted, match=r"00000001\.log: fsync failed: Input/output error"):
        log.sync()


def test_segments_are_found_and_removed_by_revision(tmp_path):
    log = new_log(tmp_path, segment_bytes=1)
    write(log)  # revisions 2, 3, 4, 5 in segments 2, 3, 4, 5
    assert [log.first_needed(revision) for revision in (1, 2, 3, 5)] == [2, 3, 4, 5]
    sizes = {number: segment_path(tmp_path, number).stat().st_size for number in (1, 2, 3)}
    assert log.bytes_between(1, 4) == sum(sizes.values())
    remove_segments_before(tmp_path, 4)
    assert segment_numbers(tmp_path) == [4, 5]
    assert [bytes(f.payload) for s in read_segments(tmp_path, 4) for f in s.frames] == PAYLOADS[2:]
