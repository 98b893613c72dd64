"""Cut a stream of bytes into lines, however the bytes come."""

from collections.abc import AsyncIterable, AsyncIterator, Sequence


async def batches(chunks: AsyncIterable[bytes]) -> AsyncIterator[Sequence[bytes]]:
    """The lines that each chunk completes. What follows the last newline is no line: somebody was cut off in it.

    A line of many chunks is joined once, at its end, so that its cost grows with its length and no faster.
    """
    begun: list[bytes] = []
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join([*begun, whole[0]])
            begun.clear()
            yield whole
        if rest:
            begun.append(rest)
