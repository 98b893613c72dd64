"""A heap of callbacks, ordered by the time at which each is due. The clock that owns the heap passes in the time."""

import heapq
import itertools
from collections.abc import Callable
from typing import Final

MAX_CANCELLED: Final = 1000
"""So many cancelled callbacks may remain in a heap, or as many as others; one more, and all of them are removed."""


class ScheduledCallback:
    """A callback and the time at which it is due."""

    __slots__ = ("_heap", "callback", "due")

    def __init__(self, heap: "TimerHeap", due: float, callback: Callable[[], None]) -> None:
        self._heap = heap
        self.due = due
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._heap.note_cancelled()

    def run(self) -> None:
        """Call the callback, unless it has run already or is cancelled."""
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


class TimerHeap:
    """The callbacks of one clock that have not run yet. Those that are due at the same time run in the order of `add`."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, ScheduledCallback]] = []
        self._numbers = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        """Return the number of callbacks, with the cancelled ones that are not removed yet."""
        return len(self._heap)

    @property
    def waiting_count(self) -> int:
        """The number of callbacks that are not cancelled."""
        return len(self._heap) - self._cancelled

    def add(self, due: float, callback: Callable[[], None]) -> ScheduledCallback:
        scheduled = ScheduledCallback(self, due, callback)
        heapq.heappush(self._heap, (due, next(self._numbers), scheduled))
        return scheduled

    def peek(self) -> ScheduledCallback | None:
        """Return the callback that is due first, without removing it; None if there is none."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][2] if self._heap else None

    def pop_due(self, until: float) -> ScheduledCallback | None:
        """Remove and return the callback that is due first; None if none is due by then. The caller runs it."""
        scheduled = self.peek()
        if scheduled is None or scheduled.due > until:
            return None
        return heapq.heappop(self._heap)[2]

    def note_cancelled(self) -> None:
        """Count a callback that was cancelled; remove all cancelled ones if there are too many."""
        self._cancelled += 1
        if self._cancelled > MAX_CANCELLED and 2 * self._cancelled > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0
