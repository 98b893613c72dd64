"""Bytes in JSON: base64 as Go's standard encoding decodes it, with its errors.

Go skips line ends and ignores unused bits of the last character. Its error contains the offset at which it stopped.
"""

import re
from binascii import a2b_base64, b2a_base64
from contextlib import suppress
from typing import Final

_NEWLINES: Final = re.compile(rb"[\r\n]+")
_FOREIGN: Final = re.compile(rb"[^A-Za-z0-9+/\r\n]")


class Base64Error(ValueError):
    """A text is not valid base64; the message is Go's, with the offset in bytes."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"illegal base64 data at input byte {offset}")


def canonical(text: str) -> str:
    """Return the text after Go decodes and encodes it; raise `Base64Error` if it is invalid."""
    # Python's checks differ from Go's, but a text that is unchanged after decoding and encoding is valid for both.
    with suppress(ValueError):
        if encode(a2b_base64(text)) == text:
            return text
    data = text.encode()
    offset = _first_error(data)
    if offset is not None:
        raise Base64Error(offset)
    return encode(a2b_base64(data))


def encode(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _first_error(data: bytes) -> int | None:
    """Return the offset at which Go stops, or None. Offsets count line ends; quanta of four characters do not."""
    foreign = _FOREIGN.search(data)
    end = foreign.start() if foreign else len(data)
    characters = end - sum(map(len, _NEWLINES.findall(data, 0, end)))
    remainder = characters % 4
    if foreign is None:
        return end - remainder if remainder else None
    if foreign.group() != b"=" or remainder < 2:
        return end
    return _padding_error(data, end, missing=4 - remainder)


def _padding_error(data: bytes, start: int, *, missing: int) -> int | None:
    """Return the offset of an error in the padding, or None. Only `=` and line ends may follow up to the end."""
    position = start + 1
    if missing == 2:
        position = _skip_newlines(data, position)
        if position == len(data):
            return position
        if data[position] != ord("="):
            return position - 1
        position += 1
    position = _skip_newlines(data, position)
    return position if position < len(data) else None


def _skip_newlines(data: bytes, position: int) -> int:
    match = _NEWLINES.match(data, position)
    return match.end() if match else position
