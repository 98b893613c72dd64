"""Run long work without blocking the event loop: in slices, or in a thread.

A slice has a maximum of items and of bytes. Work that cannot be divided runs in a thread, one piece at a time: threads
share the interpreter's lock, and each CPU-bound thread delays the event loop.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from mockube.apimachinery.cancellation import Cancelled, cancelled_by
from mockube.apimachinery.status import ApiError
from mockube.component_base.loop import yield_to_loop

LOG: Final = logging.getLogger(__name__)

SLICE: Final = 20
"""Objects in a slice. A Pod takes from 50 to 150 microseconds, depending on the output format."""
QUICK_SLICE: Final = 500
"""Objects in a slice that are only read, for 1 to 20 microseconds each."""
SLICE_BYTES: Final = 32 * 1024
"""Bytes of stored objects in a slice."""
LARGE: Final = 16 * 1024
"""Bytes of an object. Decoding, validating or encoding a larger one may take long enough to be worth a thread."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class Worker:
    """Runs large pieces of work in a thread, one after another."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(1)

    async def run(self, size: int, work: Callable[..., _R], *arguments: object) -> _R:
        """Return the result of work on `size` bytes: run inline if they are few, else in the thread.

        When the caller is cancelled, waiting work is dropped, and running work ends at its next call of
        `raise_if_cancelled`; the next work waits for its end.
        """
        if size < LARGE:
            return work(*arguments)
        await self._free.acquire()
        cancelled_event = threading.Event()
        try:
            running = asyncio.get_running_loop().run_in_executor(
                None, partial(_run_cancellable, cancelled_event, work, *arguments)
            )
        except BaseException:
            self._free.release()
            raise
        running.add_done_callback(self._on_end)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled_event.set()
            running.add_done_callback(_log_failure)
            raise

    def _on_end(self, running: "asyncio.Future[_R]") -> None:
        self._free.release()
        if not running.cancelled():
            running.exception()  # mark it as retrieved: the caller may be cancelled


def _log_failure(running: "asyncio.Future[Any]") -> None:
    """Log an error that no caller receives, unless it is one of a request."""
    error = None if running.cancelled() else running.exception()
    if error is not None and not isinstance(error, Cancelled | ApiError):
        LOG.error("The work of a cancelled request failed", exc_info=error)


def _run_cancellable(cancelled_event: threading.Event, work: Callable[..., _R], *arguments: object) -> _R:
    with cancelled_by(cancelled_event):
        return work(*arguments)


async def yield_between_batches(
    make: Callable[[_T], _R],
    items: Sequence[_T],
    *,
    size: Callable[[_T], int] | None = None,
    worker: Worker | None = None,
    count: int = SLICE,
) -> list[_R]:
    """Return the result of `make` for each item; yield to the event loop between slices.

    A slice has `count` items. With `size`, which returns the bytes of an item, slices are bounded by bytes too, and
    large items are processed by `worker`.
    """
    results: list[_R] = []
    if size is None:
        for start in range(0, len(items), count):
            if start:
                await yield_to_loop()
            results += map(make, items[start : start + count])
        return results
    worker = worker or Worker()
    for batch in batches(items, size, count=count, max_bytes=SLICE_BYTES):
        if results:
            await yield_to_loop()
        for item in batch:
            item_size = size(item)
            results.append(make(item) if item_size < LARGE else await worker.run(item_size, make, item))
    return results


def batches(
    items: Sequence[_T], size: Callable[[_T], int], *, count: int, max_bytes: int
) -> Iterator[Sequence[_T]]:
    """Yield the items in order, in batches of at most `count` items and `max_bytes`; a larger item is a batch by itself."""
    start = weight = 0
    for end, item in enumerate(items):
        item_size = size(item)
        if end > start and (end - start == count or weight + item_size > max_bytes):
            yield items[start:end]
            start, weight = end, 0
        weight += item_size
    if start:
        yield items[start:]
    elif items:
        yield items


async def filter_in_slices(
    test: Callable[[_T], bool], items: Sequence[_T], *, cost: int = 1, limit: int = 0
) -> list[_T]:
    """Return the items that pass a test, or the first `limit`. A test with a higher `cost` has fewer items in a slice."""
    selected_items: list[_T] = []
    slice_ = max(1, QUICK_SLICE // cost)
    for start in range(0, len(items), slice_):
        if start:
            await yield_to_loop()
        selected_items += filter(test, items[start : start + slice_])
        if limit and len(selected_items) >= limit:
            return selected_items[:limit]
    return selected_items
