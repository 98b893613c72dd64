"""The memory of a process that runs for long: the schedule of Python's cyclic garbage collector, and free pages.

A collection stops the process, for a second if there are millions of objects. So each object is examined once, in the
young generation. Older objects are examined only when their number has doubled, and only if they are few. In a server requests,
connections, stored objects and compiled schemas have no cycles, and reference counting frees them.
"""

import gc
import sys
from asyncio import AbstractEventLoop
from typing import Final

NEVER: Final = 2**31 - 1
THRESHOLD: Final = (50_000, NEVER, NEVER)
"""A collection of the young generation begins at 50,000 net allocations and takes about 10 ms."""
INTERVAL: Final = 30.0
"""Seconds between two calls of `OldObjects.age`. The objects of a large request are freed by the second call."""
MAX_COLLECTED_OBJECTS: Final = 400_000
"""The maximum of old objects for a full collection, which takes about 0.1 s; with more, it would take seconds."""

BLOCKS_PER_OBJECT: Final = 3
"""Allocated blocks for each object that the collector tracks: more than the average, which is 2.4 in a new server."""


class OldObjects:
    """Moves old objects to the permanent generation of the interpreter (`gc.freeze`), which collections ignore."""

    def __init__(self, maximum: int = MAX_COLLECTED_OBJECTS) -> None:
        self._maximum = maximum
        self._count = 0
        """The number of frozen objects after the last full collection."""

    def begin(self) -> None:
        """Freeze all objects as old and in use; called when the program has started."""
        gc.freeze()
        self._count = gc.get_freeze_count()

    def age(self) -> bool:
        """Freeze the present objects; first collect all of them if the frozen ones have doubled and are few.

        Return whether all were collected.
        """
        # `gc.get_freeze_count` takes 0.1 s for 1,500,000 objects, as a large request has them.
        are_few = sys.getallocatedblocks() <= self._maximum * BLOCKS_PER_OBJECT
        is_doubled = are_few and 2 * self._count < gc.get_freeze_count() <= self._maximum
        gc.collect(0)
        if is_doubled:
            gc.unfreeze()
            gc.collect()
        gc.freeze()
        if is_doubled:
            self._count = gc.get_freeze_count()
        return is_doubled

    def age_periodically(self, loop: AbstractEventLoop, interval: float = INTERVAL) -> None:
        """Call `age` and return free memory at each interval while the loop runs."""

        def age_and_repeat() -> None:
            loop.call_later(interval, age_and_repeat)  # also after an error, which the loop logs
            self.age()
            return_free_memory()

        loop.call_later(interval, age_and_repeat)


def return_free_memory() -> None:
    """Return the free pages of the C library's heaps to the operating system, if the library is glibc.

    By default glibc returns only those at the end of a heap. After the installation of 200 definitions, a fifth of the
    memory is free pages between pages in use.
    """
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - not needed at the start

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
