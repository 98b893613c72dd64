"""The format of a record in a file, `mark | length | checksum | payload`, and the detection of damaged records.

Pure functions from bytes to bytes. The callers interpret payloads and handle damage.

The checksum covers the payload, its length and the offset of the frame, so a frame is valid only at the offset at
which it was written. When the bytes after some damage are searched for complete frames, a value that contains a copy
of a log is not mistaken for frames.
"""

import struct
import zlib
from collections.abc import Iterator

from msgspec import Struct

MARK = b"\xf5log"
"""A frame's first bytes. UTF-8 text does not contain 0xf5, so the search rarely finds a false match."""

_HEAD = struct.Struct("<4sII")
_POSITION = struct.Struct("<QI")


class Frame(Struct, frozen=True, kw_only=True):
    offset: int
    payload: memoryview

    @property
    def end(self) -> int:
        return self.offset + size(self.payload)


def encode(payload: bytes, offset: int) -> bytes:
    """Return the frame of a payload; it is valid at this offset only."""
    return _HEAD.pack(MARK, len(payload), _checksum(payload, offset)) + payload


def size(payload: bytes | memoryview) -> int:
    """Return the size of the frame of a payload."""
    return _HEAD.size + len(payload)


def read_frames(data: bytes, offset: int) -> Iterator[Frame]:
    """Yield the complete frames from `offset` on, up to the first that is not complete."""
    view = memoryview(data)
    while (end := frame_end(view, offset)) is not None:
        yield Frame(offset=offset, payload=view[offset + _HEAD.size : end])
        offset = end


def find_frame(data: bytes, offset: int) -> int | None:
    """Return the position of the first complete frame at or after `offset`, or None."""
    view = memoryview(data)
    position = data.find(MARK, offset)
    while position >= 0:
        if frame_end(view, position) is not None:
            return position
        position = data.find(MARK, position + 1)
    return None


def frame_end(data: memoryview, offset: int) -> int | None:
    """Return the end of the frame that begins at `offset`; None if it is not complete."""
    start = offset + _HEAD.size
    if start > len(data):
        return None
    mark, length, checksum = _HEAD.unpack_from(data, offset)
    end: int = start + length
    if mark != MARK or end > len(data) or checksum != _checksum(data[start:end], offset):
        return None
    return end


def _checksum(payload: bytes | memoryview, offset: int) -> int:
    return zlib.crc32(payload, zlib.crc32(_POSITION.pack(offset, len(payload))))
