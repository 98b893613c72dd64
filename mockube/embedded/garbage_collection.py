"""The garbage collector of the interpreter, while clusters start and end in this process.

A start creates 45,000 objects, most of which stay. The interpreter would examine all of them at the end of the start,
and every few starts all objects of the process: together a third of the time of a start.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GARBAGE_OF_A_CLUSTER: Final = 30_000
"""The objects of a closed cluster that only a full collection frees."""


class PythonGarbageCollector:
    """Pauses the interpreter's collector while clusters start, and collects after enough clusters have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._was_enabled = False
        self._garbage = 0
        self._remaining = 150_000  # about as many as there are after the imports
        """The objects that remained after the last full collection."""

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Disable the collector during the block. The objects that exist after it are in the oldest generation."""
        with self._lock:
            if not self._pauses:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if not self._pauses and self._was_enabled:
                    _age_all_objects()
                    gc.enable()

    def count_ended_cluster(self) -> None:
        """Collect all garbage if that of the ended clusters is more than what remained after the last collection.

        The lock is not held meanwhile, because finalizers can run, and they can close clusters.
        """
        with self._lock:
            self._garbage += GARBAGE_OF_A_CLUSTER
            is_due = self._garbage > self._remaining and gc.isenabled()
            if is_due:
                self._garbage = 0
        if is_due:
            gc.collect()
            self._remaining = len(gc.get_objects())


GARBAGE_COLLECTOR: Final = PythonGarbageCollector()


def _age_all_objects() -> None:
    """Move all objects to the oldest generation without examining them, unless the process has frozen objects."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
