"""A delaying queue, a heap of keys by due time on the injected clock, and a debouncer upon it.

The debouncer adds a key once its object has been quiet for a while, and at the latest after a maximum delay.
"""

import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from mockube.apimachinery.clock import Clock, Timer

K = TypeVar("K", bound=Hashable)


class DelayingQueue(Generic[K]):
    """Holds each key once, at the earliest of its due times."""

    def __init__(self, add: Callable[[K], None], clock: Clock) -> None:
        """`add` is called with a key when it is due."""
        self._add = add
        self._clock = clock
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        """An entry whose time is not the one in `_due` was replaced by an earlier one, and is ignored."""
        self._numbers = itertools.count()
        self._timer: Timer | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._due)

    def add_after(self, key: K, seconds: float) -> None:
        if self._closed:
            return
        if seconds <= 0:
            self._add(key)
            return
        due = self._clock.monotonic() + seconds
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        entry = (due, next(self._numbers), key)
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry:
            self._set_timer()

    def close(self) -> None:
        """Drop every key, and accept no new ones."""
        self._closed = True
        self._due.clear()
        self._heap.clear()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._heap:
            delay = self._heap[0][0] - self._clock.monotonic()
            self._timer = self._clock.call_later(delay, self._fall_due)

    def _fall_due(self) -> None:
        # The timer was set for the first entry, and may expire a rounding error early.
        now = max(self._clock.monotonic(), self._heap[0][0])
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self._add(key)
        self._set_timer()


class _Burst:
    __slots__ = ("due", "until")

    def __init__(self, *, due: float, until: float) -> None:
        self.due = due
        self.until = until


class Debouncer(Generic[K]):
    """Each change restarts its key's wait. The timer is only checked when it fires, so that a change costs next to nothing."""

    def __init__(self, add: Callable[[K], None], clock: Clock) -> None:
        """`add` is called with a key when its wait is over."""
        self._add = add
        self._clock = clock
        self._delaying = DelayingQueue[K](self._look, clock)
        self._swarms: dict[K, _Burst] = {}

    def add_after_quiet(self, key: K, *, quiet: float, max_delay: float) -> None:
        """Add the key after `quiet` seconds without a change, and after `max_delay` seconds at the latest."""
        now = self._clock.monotonic()
        swarm = self._swarms.get(key)
        if swarm is None:
            self._swarms[key] = _Burst(due=now + quiet, until=now + max_delay)
            self._delaying.add_after(key, quiet)
        else:
            swarm.due = min(now + quiet, swarm.until)

    def close(self) -> None:
        """Drop every key, and accept no new ones."""
        self._delaying.close()
        self._swarms.clear()

    def _look(self, key: K) -> None:
        rest = self._swarms[key].due - self._clock.monotonic()
        if rest > 0:
            self._delaying.add_after(key, rest)
            return
        del self._swarms[key]
        self._add(key)
