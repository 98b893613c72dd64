"""Decode PEM like Go's package: find the blocks in a text, between which there may be other text.

The text is read once, from its beginning to its end, so that the time is linear.
"""

import base64
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from . import gotext

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"


class Block(Struct, frozen=True, kw_only=True):
    type: str
    headers: bytes
    data: bytes
    end: int = 0
    """The offset after the block."""


def blocks(text: bytes) -> list[Block]:
    """Return the blocks with valid base64; others are skipped."""
    return [*_blocks(text)]


def decode(text: bytes) -> Block | None:
    """Return the first block, or None."""
    return next(_blocks(text), None)


def _blocks(text: bytes) -> Iterator[Block]:
    position = 0
    while (end := text.find(_END, position)) >= 0:
        # Only the last beginning before an end has this end.
        begin = text.rfind(_BEGIN, position, end)
        closing = end + len(_END)
        if begin < 0 or (begin > position and text[begin - 1 : begin] != b"\n"):
            position = closing
            continue
        block, read_end = _read_block(text, begin + len(_BEGIN), end)
        if block is not None:
            position = _line(text, closing - 1)[1]
            yield replace(block, end=position)
        elif read_end > closing:
            return
        else:
            position = closing


def _read_block(text: bytes, position: int, end: int) -> tuple[Block | None, int]:
    """Return the block, or None if it is invalid, and the offset up to which it was read.

    Its type begins at `position`, and its end line at `end`.
    """
    line, body = _line(text, position)
    if not line.endswith(_DASHES):
        return None, body
    kind, headers = line.removesuffix(_DASHES), body
    while True:
        if body >= len(text):
            return None, len(text) + len(_END)
        line, following = _line(text, body)
        if b":" not in line:
            break
        body = following
    is_headed = body > headers
    closing = end + len(_END)
    closed = (
        text.startswith(kind + _DASHES, closing) and not _line(text, closing + len(kind) + len(_DASHES))[0]
    )
    if not closed or (is_headed and end < body):
        return None, body
    try:
        data = base64.b64decode(text[body : max(body, end)].translate(None, b" \t\r\n"), validate=True)
    except ValueError:
        return None, body
    return Block(type=gotext.decode_utf8(kind), headers=text[headers:body], data=data), body


def _line(text: bytes, position: int) -> tuple[bytes, int]:
    """Return the line at a position, without trailing whitespace, and the position of the next line."""
    stop = text.find(b"\n", position)
    if stop < 0:
        return text[position:].rstrip(b" \t"), len(text)
    return text[position:stop].removesuffix(b"\r").rstrip(b" \t"), stop + 1
