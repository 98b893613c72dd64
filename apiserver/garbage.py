"""When a server's process looks for garbage: cycles of objects that nothing else refers to.

Nothing else runs meanwhile, for a second if there are millions of objects. So each object is looked at once, when it is
young. What is old is looked at when it has doubled only, and not where that would take long: requests, connections, stored
objects and compiled schemas have no cycles, and are freed without being looked for.
"""

import gc
import sys
from asyncio import AbstractEventLoop
from typing import Final

NEVER: Final = 2**31 - 1
THRESHOLD: Final = (50_000, NEVER, NEVER)
"""The objects that come, beyond those that go, before the young ones are looked at: some 10 ms."""
INTERVAL: Final = 30.0
"""Seconds between two looks at how many objects have become old. What large requests are made of is gone by the second."""
MOST_LOOKED_AT: Final = 400_000
"""The old objects that are looked at: some 0.1 s. A server that has more would stand still for seconds."""

BLOCKS_PER_OBJECT: Final = 8
"""Allocated blocks for each object that may be part of a cycle: more than the average."""


class OldObjects:
    """Sets aside the objects that are old, for which the interpreter has a place that it does not look at: the frozen ones."""

    def __init__(self, most: int = MOST_LOOKED_AT) -> None:
        self._most = most
        self._count = 0
        """How many there were when all of them were in use."""

    def begin(self) -> None:
        """Take all that there is for old and in use, as when a program has started."""
        gc.freeze()
        self._count = gc.get_freeze_count()

    def age(self) -> bool:
        """Set aside what is there, and look for garbage in all of it if those set aside before have doubled, and are few."""
        # To count the old objects takes 0.1 s and more while a large request has millions of them.
        are_few = sys.getallocatedblocks() <= self._most * BLOCKS_PER_OBJECT
        is_doubled = are_few and 2 * self._count < gc.get_freeze_count() <= self._most
        gc.collect(0)
        if is_doubled:
            gc.unfreeze()
            gc.collect()
        gc.freeze()
        if is_doubled:
            self._count = gc.get_freeze_count()
        return is_doubled

    def age_often(self, loop: AbstractEventLoop, interval: float = INTERVAL) -> None:
        """Do so from now on, as long as the loop runs."""

        def again() -> None:
            self.age()
            return_free_memory()
            loop.call_later(interval, again)

        loop.call_later(interval, again)


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
