"""Create and read the segments of the log; a segment is a file of `magic | header frame | frames`.

A frame contains everything that one fsync makes durable, and the next frame is written only after that fsync. So a
crash can leave at most one unfinished frame at the end of the last segment, a *torn tail*. Anything else that is not
complete was damaged after it was synced: `Corrupt`. A segment is also synced before the next one is begun, and the
next header contains its length. The module handles payloads and first revisions, not keys.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from mockube.etcd.errors import Corrupt
from mockube.etcd.kv import Revision

from . import frame
from .disk import Disk, File, NewFile, numbers_in_names, store_errors_for
from .frame import Frame

MAGIC = b"mockube log 1\n"
"""Identifies the file and its format."""

FIRST_SEGMENT = 1

_NAME = re.compile(r"(\d{8})\.log")


class SegmentHeader(Struct, frozen=True, kw_only=True, array_like=True):
    """The first frame of a segment, which describes it."""

    number: int
    first_revision: Revision
    """Earlier segments contain only earlier revisions."""
    previous_size: int
    """The size of the complete segment before; 0 if there was none."""


class Segment(Struct, frozen=True, kw_only=True):
    """The content of a segment file."""

    path: Path
    header: SegmentHeader
    frames: Sequence[Frame]
    """The complete frames, up to the first that is not complete."""
    end: int
    """The end of the last complete frame."""
    size: int


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}.log"


def segment_numbers(directory: Path) -> list[int]:
    """Return the numbers of the existing segments, in order."""
    return numbers_in_names(directory, _NAME)


def segment_paths(directory: Path) -> list[Path]:
    """Return the paths of the existing segments, in order."""
    return [segment_path(directory, number) for number in segment_numbers(directory)]


def create_segment(disk: Disk, directory: Path, header: SegmentHeader) -> tuple[File, int]:
    """Create a segment without frames, atomically; return the open file and its size."""
    content = MAGIC + frame.encode(msgspec.msgpack.encode(header), len(MAGIC))
    file = NewFile(disk, segment_path(directory, header.number))
    try:
        file.write(content, 0)
        file.publish()
    except BaseException:
        file.discard()
        raise
    return file, len(content)


def remove_segments_before(directory: Path, number: int) -> None:
    """Remove the oldest segments first, so that a crash leaves no gap."""
    for old in segment_numbers(directory):
        if old < number:
            path = segment_path(directory, old)
            with store_errors_for(path):
                path.unlink()


def missing_segment(directory: Path, number: int) -> Corrupt:
    return Corrupt(str(segment_path(directory, number)), 0, "the segment is missing")


def read_segments(directory: Path, first: int) -> Iterator[Segment]:
    """Yield the segments from `first` on, and check that each follows the one before; then raise Corrupt for damage."""
    before: Segment | None = None
    numbers = [number for number in segment_numbers(directory) if number >= first]
    for expected, number in enumerate(numbers, first):
        if number != expected:
            raise missing_segment(directory, expected)
        segment, damage = _read(segment_path(directory, number))
        if before is not None:
            _check_succession(before, segment)
        yield segment
        if damage is not None:
            raise damage
        before = segment


def _check_succession(before: Segment, segment: Segment) -> None:
    length = segment.header.previous_size
    if not before.end == before.size == length:
        reason = (
            f"{before.end} of {before.size} bytes are valid, but {segment.path.name} starts after {length}"
        )
        raise Corrupt(str(before.path), min(before.end, length), reason)


def _read(path: Path) -> tuple[Segment, Corrupt | None]:
    """Read the complete frames. If there are further complete frames after the first incomplete one, the file is
    damaged.
    """
    with store_errors_for(path):
        data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise Corrupt(str(path), 0, f"a log of format 1 begins with {MAGIC!r}")
    frames = list(frame.read_frames(data, len(MAGIC)))
    if not frames:
        raise Corrupt(str(path), len(MAGIC), "the header record is damaged")
    header, end = _read_header(path, frames[0]), frames[-1].end
    segment = Segment(path=path, header=header, frames=frames[1:], end=end, size=len(data))
    following = frame.find_frame(data, end)
    if following is None:
        return segment, None
    return segment, Corrupt(str(path), end, f"a damaged record, followed by a valid one at byte {following}")


def _read_header(path: Path, first: Frame) -> SegmentHeader:
    try:
        header = msgspec.msgpack.decode(first.payload, type=SegmentHeader)
    except msgspec.DecodeError as error:
        raise Corrupt(str(path), first.offset, f"the header record cannot be read: {error}") from error
    if segment_path(path.parent, header.number) != path:
        raise Corrupt(str(path), first.offset, f"the file has the header of segment {header.number}")
    return header
