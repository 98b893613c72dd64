"""How a record lies in a file: `mark | length | checksum | payload`, and how whole records are distinguished from damaged ones.

Pure: bytes in, bytes out. What a payload means, and what is done about damage, is for others to say.

The checksum covers the payload, its length and the offset at which the frame lies. So a frame counts only where it
was written: when the bytes after some damage are searched for whole frames, a copy of a log that was stored as a
value is not taken for one.
"""

import struct
import zlib
from collections.abc import Iterator

from msgspec import Struct

MARK = b"\xf5log"
"""A frame's first bytes; 0xf5 occurs in no UTF-8 text, so a search seldom stops in vain."""

_HEAD = struct.Struct("<4sII")
_POSITION = struct.Struct("<QI")


class Frame(Struct, frozen=True, kw_only=True):
    offset: int
    payload: memoryview

    @property
    def end(self) -> int:
        return self.offset + size(self.payload)


def encode(payload: bytes, offset: int) -> bytes:
    """The frame of a payload, to be written at this offset and no other."""
    return _HEAD.pack(MARK, len(payload), _checksum(payload, offset)) + payload


def size(payload: bytes | memoryview) -> int:
    """How many bytes the frame of a payload takes."""
    return _HEAD.size + len(payload)


def read_frames(data: bytes, offset: int) -> Iterator[Frame]:
    """The whole frames from `offset` on, up to the first that is not whole."""
    view = memoryview(data)
    while (end := frame_end(view, offset)) is not None:
        yield Frame(offset=offset, payload=view[offset + _HEAD.size : end])
        offset = end


def find_frame(data: bytes, offset: int) -> int | None:
    """Where the first whole frame at or after `offset` lies, if there is one."""
    view = memoryview(data)
    position = data.find(MARK, offset)
    while position >= 0:
        if frame_end(view, position) is not None:
            return position
        position = data.find(MARK, position + 1)
    return None


def frame_end(data: memoryview, offset: int) -> int | None:
    """Where the frame that begins at `offset` ends; None if it is not whole."""
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
