"""Long work that does not block other requests: in slices, or in a thread beside the event loop.

A slice ends after so many bytes. Work that cannot be cut is handed to a thread, one piece at a time: threads share the
interpreter, and each of them that computes makes the event loop wait for its turn.
"""

import asyncio
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from types import coroutine
from typing import Final, TypeVar

from mockube.apimachinery.cancellation import while_wanted

SLICE: Final = 20
"""Objects. A Pod takes from 50 to 150 microseconds, by what it is made into."""
QUICK_SLICE: Final = 500
"""Objects that are looked at only: from 1 to 20 microseconds each."""
SLICE_BYTES: Final = 32 * 1024
"""Of stored objects, after which a slice ends however few they are."""
LARGE: Final = 16 * 1024
"""Bytes of an object from which on it may take so long to read, check or write that a thread is worth its price."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class Worker:
    """Does large pieces of work in a thread, one after another."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(1)

    async def run(self, size: int, work: Callable[..., _R], *arguments: object) -> _R:
        """Return the result of work on so many bytes: inline if they are few, else in the thread.

        When the caller is cancelled, waiting work is dropped, and running work ends at its next call of
        `check_wanted`; the next work waits for its end.
        """
        if size < LARGE:
            return work(*arguments)
        await self._free.acquire()
        cancelled_event = threading.Event()
        try:
            running = asyncio.get_running_loop().run_in_executor(
                None, partial(_while_wanted, cancelled_event, work, *arguments)
            )
        except BaseException:
            self._free.release()
            raise
        running.add_done_callback(self._on_end)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled_event.set()
            raise

    def _on_end(self, running: "asyncio.Future[_R]") -> None:
        self._free.release()
        if not running.cancelled():
            running.exception()  # the caller may have gone


def _while_wanted(cancelled_event: threading.Event, work: Callable[..., _R], *arguments: object) -> _R:
    with while_wanted(cancelled_event):
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

    A slice has `count` items. With `size`, which returns the bytes of an item, slices are bounded by bytes too, and large items are
    made by `worker`.
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
    """Yield the items in order, so many or so many bytes of them at a time; a larger one by itself."""
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


async def filter_in_slices(test: Callable[[_T], bool], items: Sequence[_T], *, cost: int = 1) -> list[_T]:
    """The items that pass a test; one that costs more is made on fewer items before others have their turn."""
    selected_items: list[_T] = []
    slice_ = max(1, QUICK_SLICE // cost)
    for start in range(0, len(items), slice_):
        if start:
            await yield_to_loop()
        selected_items += filter(test, items[start : start + slice_])
    return selected_items


@coroutine
def yield_to_loop() -> Generator[None, None, None]:
    """Let everything else that can run do so once."""
    yield
