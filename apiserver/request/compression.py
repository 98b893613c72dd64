"""Large answers, compressed: for whom, from which size on, and in a thread, so that nobody else has to wait.

Compressing takes some milliseconds a megabyte even in the quickest way, which is the one that upstream takes too. zlib
does it without the interpreter's lock.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterable
from typing import Final

FROM: Final = 128 * 1024
"""Bytes; an answer that has no more is sent as it is."""
HEADERS: Final = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\nTransfer-Encoding: chunked\r\n"


def is_understood(accepted: str) -> bool:
    """Whether a client that accepts these encodings takes gzip; weights are not read, as upstream does not."""
    return any(token.strip() == "gzip" for token in accepted.split(","))


async def compressed(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """The same in gzip's form. Pieces should be large: each is handed to a thread by itself."""
    compressor = zlib.compressobj(zlib.Z_BEST_SPEED, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        made = await asyncio.to_thread(compressor.compress, piece)
        if made:
            yield made
    yield compressor.flush()
