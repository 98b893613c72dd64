"""Compression of large responses: for which clients, from which size on, and in a thread, off the event loop.

Compression takes some milliseconds a megabyte even at the fastest level, which upstream uses too. zlib releases the
interpreter's lock.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterable
from typing import Final

from mockube.apiserver.request.request import ACCEPT_ENCODING, Request

MIN_SIZE: Final = 128 * 1024
"""The least size in bytes; a smaller response is not compressed."""


def takes_gzip(request: Request) -> bool:
    """Whether the client takes gzip; weights are not read, as upstream does not."""
    return any(token.strip() == "gzip" for token in request.header(ACCEPT_ENCODING).split(","))


async def compress(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Compress with gzip. Pieces should be large: each is compressed in a thread."""
    compressor = zlib.compressobj(zlib.Z_BEST_SPEED, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        chunk = await asyncio.to_thread(compressor.compress, piece)
        if chunk:
            yield chunk
    yield compressor.flush()
