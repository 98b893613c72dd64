"""Reads at a revision of the store, which may be an old one, and reads that are at least as new as a revision."""

from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Final, TypeVar

from mockube.apimachinery import status
from mockube.apimachinery.status import ApiError, Cause, Expired
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.errors import Compacted, FutureRevision
from mockube.etcd.kv import FIRST_REVISION, KV, Range, RangeResult, Revision, prefix_end

T = TypeVar("T")

WAIT_SECONDS: Final = 3.0
"""How long a read waits for a revision that the watch cache does not have yet."""
_ANY_KEY: Final = b"\x00"
TOO_OLD_TO_LIST: Final = "The resourceVersion for the provided list is too old."


async def at_revision(reading: Awaitable[T]) -> T:
    """Return the result of a read of the store at a revision.

    The errors are those of kube-apiserver for a list at an exact resourceVersion: Expired for a revision that was compacted,
    and, at once, Timeout for one that the store has not reached.
    """
    try:
        return await reading
    except Compacted as error:
        raise Expired(TOO_OLD_TO_LIST) from error
    except FutureRevision as error:
        raise too_large(error.requested, error.current, retry_after=0) from error


async def pages_at(
    kv: KV, prefix: bytes, revision: Revision, limit: int
) -> AsyncGenerator[RangeResult, None]:
    """Yield the keys below a prefix at a revision in pages, with the same errors; other tasks run between them."""
    start, end = prefix, prefix_end(prefix)
    while True:
        page = await at_revision(kv.range(Range(key=start, range_end=end, revision=revision, limit=limit)))
        yield page
        if not page.more:
            return
        start = page.kvs[-1].key + b"\x00"
        await yield_to_loop()


async def pieces_at_revision(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of an archive, with the same errors, also if history is compacted between two of them."""
    async with aclosing(pieces):
        while (piece := await at_revision(anext(pieces, None))) is not None:
            yield piece


async def history_start(kv: KV) -> Revision:
    """Return the oldest revision of a store that can be read; 0 if nothing was compacted."""
    known = (await kv.status()).compact_revision
    if known:
        return known
    try:  # etcd reports it in the error of a read before it only
        await kv.range(Range(key=_ANY_KEY, revision=FIRST_REVISION, count_only=True))
    except Compacted as error:
        return error.compact_revision
    return 0


async def wait_for(watch_cache: WatchCache, revision: Revision) -> None:
    """Wait until the watch cache has a revision, or raise an error that it is too large."""
    if watch_cache.revision < revision and not await watch_cache.wait_reached(revision, within=WAIT_SECONDS):
        raise too_large(revision, watch_cache.revision, retry_after=1)


def too_large(revision: Revision, current: Revision, *, retry_after: int) -> ApiError:
    """Return the error of a read at a revision that there is not yet."""
    cause = Cause(reason="ResourceVersionTooLarge", message="Too large resource version")
    problem = f"Too large resource version: {revision}, current: {current}"
    return status.timeout(problem, retry_after, [cause])
