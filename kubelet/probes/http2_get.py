"""The GET request of an HTTP probe whose protocol is HTTP2: over TCP, with prior knowledge (h2c).

Of the response, only the status is read: it is the first header. Redirects are not followed.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from . import http2
from .http2 import NotHttp2, StreamEnded

_MALFORMED: Final = "malformed HTTP response"
_INDEXED: Final = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
"""The statuses in HPACK's static table by the indices whose name is `:status`."""
_DIGITS: Final[Mapping[str, str]] = {
    "00000": "0", "00001": "1", "00010": "2", "011001": "3", "011010": "4",
    "011011": "5", "011100": "6", "011101": "7", "011110": "8", "011111": "9",
}  # fmt: skip
"""The digits by their Huffman codes."""


async def get_status(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    authority: str,
    path: str,
    headers: Mapping[str, str],
) -> int:
    """Return the status of the response; raise ValueError if it is not HTTP/2."""
    pairs = {":method": "GET", ":scheme": "http", ":path": path, ":authority": authority}
    pairs |= {name.lower(): value for name, value in headers.items()}
    await http2.send_request(writer, pairs)
    try:
        return await _read_status(reader, writer)
    except NotHttp2:
        raise ValueError(_MALFORMED) from None
    except StreamEnded:
        raise ValueError("the server ended the request") from None


async def _read_status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    while True:
        kind, flags, payload = await http2.next_frame(reader, writer)
        if kind == http2.HEADERS:
            return _status(_block_of(flags, payload))


def _block_of(flags: int, payload: bytes) -> bytes:
    """Return the headers in a frame, without what may stand before them."""
    return payload[(1 if flags & http2.PADDED else 0) + (5 if flags & http2.PRIORITY else 0) :]


def _status(block: bytes) -> int:
    """Return the status that a block of headers begins with."""
    start = _after_sizes(block)
    first = block[start] if start < len(block) else 0
    if first & 0x80 and first & 0x7F in _INDEXED:
        return _INDEXED[first & 0x7F]
    index = first & (0x3F if first & 0x40 else 0x0F)
    value = block[start + 1 :]
    if index not in _INDEXED or not value:
        raise ValueError(_MALFORMED)
    length = value[0] & 0x7F
    text = value[1 : 1 + length]
    digits = _decode_digits(text) if value[0] & 0x80 else text.decode("latin-1")
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(_MALFORMED)
    return int(digits[:3])


def _after_sizes(block: bytes) -> int:
    """Return the position after the sizes of the dynamic table, with which a block may begin."""
    start = 0
    while start < len(block) and block[start] & 0xE0 == 0x20:
        has_more = block[start] & 0x1F == 0x1F
        start += 1
        while has_more and start < len(block):
            has_more = bool(block[start] & 0x80)
            start += 1
    return start


def _decode_digits(data: bytes) -> str:
    """Decode Huffman codes of digits; the rest of the last byte is filled with ones."""
    digits, code = "", ""
    for bit in "".join(f"{byte:08b}" for byte in data[:4]):
        code += bit
        if code in _DIGITS:
            digits, code = digits + _DIGITS[code], ""
    return digits
