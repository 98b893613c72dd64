"""PEM as Go's package reads it: the blocks in a text, whatever is around them."""

import base64
import binascii
import re
from typing import Final

from msgspec import Struct

_BLOCK: Final = re.compile(
    rb"^-----BEGIN (?P<type>[^\r\n]*)-----[ \t\r]*\n(?P<headers>(?:[^\r\n:]+:[^\n]*\n)*)(?P<body>[^-]*?)"
    rb"-----END (?P=type)-----[ \t\r]*$",
    re.MULTILINE,
)


class Block(Struct, frozen=True, kw_only=True):
    type: str
    headers: bytes
    data: bytes


def blocks(text: bytes) -> list[Block]:
    """Those that hold base64; others are passed over."""
    found = []
    for match in _BLOCK.finditer(text):
        try:
            data = base64.b64decode(b"".join(match["body"].split()), validate=True)
        except binascii.Error:
            continue
        found.append(Block(type=match["type"].decode(), headers=match["headers"], data=data))
    return found


def decode(text: bytes) -> Block | None:
    """The first block."""
    return next(iter(blocks(text)), None)
