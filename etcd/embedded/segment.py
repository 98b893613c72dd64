"""A segment of the log as a file: `magic | opening frame | frames`, how it is made and how it is read.

A frame holds all that one fsync makes durable, and the next is written only after that fsync. So a crash can leave
nothing worse than one unfinished frame at the very end of the last segment, a *torn tail*. Whatever else is not whole
was written, synced and damaged later: `Corrupt`. A segment too is synced before the next one is begun, and the next
one's opening has its length. The module handles payloads and the revision a segment begins at, not keys.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from mockube.etcd.embedded import frame
from mockube.etcd.embedded.disk import Disk, File, NewFile, naming_file
from mockube.etcd.embedded.frame import Frame
from mockube.etcd.errors import Corrupt
from mockube.etcd.kv import Revision

MAGIC = b"mockube log 1\n"
"""Tells people and `read_segment` what the file is, and in which format."""

FIRST_SEGMENT = 1

_NAME = re.compile(r"(\d{8})\.log")


class Opening(Struct, frozen=True, kw_only=True, array_like=True):
    """The first frame of a segment, which describes it."""

    number: int
    first_revision: Revision
    """No earlier segment holds this revision or a later one."""
    previous_size: int
    """Bytes of the segment before, all of them whole; 0 if there was none."""


class Segment(Struct, frozen=True, kw_only=True):
    """A segment as it was found."""

    path: Path
    opening: Opening
    frames: Sequence[Frame]
    """Those that are whole, from the first to the first that is not."""
    end: int
    """Where they end."""
    size: int


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}.log"


def segment_numbers(directory: Path) -> list[int]:
    """The numbers of the segments that are there, in order."""
    with naming_file(directory):
        return sorted(int(match[1]) for path in directory.iterdir() if (match := _NAME.fullmatch(path.name)))


def segment_paths(directory: Path) -> list[Path]:
    """The segments that are there, in order."""
    return [segment_path(directory, number) for number in segment_numbers(directory)]


def create_segment(disk: Disk, directory: Path, opening: Opening) -> tuple[File, int]:
    """Make a segment without frames, whole or not at all; returns it open, with its size."""
    content = MAGIC + frame.encode(msgspec.msgpack.encode(opening), len(MAGIC))
    file = NewFile(disk, segment_path(directory, opening.number))
    try:
        file.write(content, 0)
        file.publish()
    except BaseException:
        file.discard()
        raise
    return file, len(content)


def remove_segments_before(directory: Path, number: int) -> None:
    """The oldest go first, so that a crash leaves no gap."""
    for old in segment_numbers(directory):
        if old < number:
            path = segment_path(directory, old)
            with naming_file(path):
                path.unlink()


def missing_segment(directory: Path, number: int) -> Corrupt:
    return Corrupt(str(segment_path(directory, number)), 0, "the segment is missing")


def read_segments(directory: Path, first: int) -> Iterator[Segment]:
    """Each segment from the `first` on, checked to follow the one before; Corrupt comes after what is whole before it."""
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
    length = segment.opening.previous_size
    if not before.end == before.size == length:
        reason = (
            f"{before.end} bytes are whole of {before.size}, but {segment.path.name} was begun after {length}"
        )
        raise Corrupt(str(before.path), min(before.end, length), reason)


def _read(path: Path) -> tuple[Segment, Corrupt | None]:
    """Read up to where the file stops being whole; that is damage if there are whole frames after it."""
    with naming_file(path):
        data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise Corrupt(str(path), 0, f"a log of format 1 begins with {MAGIC!r}")
    frames = list(frame.read_frames(data, len(MAGIC)))
    if not frames:
        raise Corrupt(str(path), len(MAGIC), "the opening record is damaged")
    opening, end = _read_opening(path, frames[0]), frames[-1].end
    segment = Segment(path=path, opening=opening, frames=frames[1:], end=end, size=len(data))
    following = frame.find_frame(data, end)
    if following is None:
        return segment, None
    return segment, Corrupt(str(path), end, f"a damaged record, and a whole one after it at byte {following}")


def _read_opening(path: Path, first: Frame) -> Opening:
    try:
        opening = msgspec.msgpack.decode(first.payload, type=Opening)
    except msgspec.DecodeError as error:
        raise Corrupt(str(path), first.offset, f"the opening record cannot be read: {error}") from error
    if segment_path(path.parent, opening.number) != path:
        raise Corrupt(str(path), first.offset, f"the file has the header of segment {opening.number}")
    return opening
