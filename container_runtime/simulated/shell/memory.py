"""The memory that the programs of a container fill.

A program that needs more memory than there is ends the container: a kubelet sets `memory.oom.group` of cgroup v2, so that the kernel kills all processes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from mockube.container_runtime.load import FILL_RATE, MemoryStep

MAX_STEPS: Final = 50
"""The changes of the memory that are recorded; later ones change the last."""

_MIN_SECONDS: Final = 0.05
"""The time within which two changes are recorded as one."""


class OutOfMemory(Exception):
    """The programs of a container need more memory than there is: all of them are killed."""


class Memory:
    """What the programs of a container have filled, besides what they have at rest."""

    def __init__(
        self, limit: Callable[[], float] = lambda: inf, on_change: Callable[[float], None] = lambda _: None
    ) -> None:
        """`limit` returns what there is now, less than nothing if others use too much, infinite if the end is computed later; `on_change` is called with the memory in use after each change."""
        self._limit = limit
        self.used = 0.0
        self.steps: list[MemoryStep] = []
        self._by_process: defaultdict[int, float] = defaultdict(float)
        self._on_change = on_change

    def change(self, size: float, process: int, at: float) -> None:
        """Let a process use more memory, or less, from a time on; raise `OutOfMemory`."""
        self._by_process[process] += size
        self.used += size
        step = MemoryStep(at, self.used)
        last = self.steps[-1] if self.steps else None
        is_small = last is not None and step.seconds - last.seconds < _MIN_SECONDS and size > 0
        if last is not None and (is_small or len(self.steps) >= MAX_STEPS) and self.used < inf:
            self.steps[-1] = MemoryStep(last.seconds, max(self.used, last.size))
        else:
            self.steps.append(step)
        limit = self._limit()
        self._on_change(min(self.used, max(limit, 0.0)))
        if size > 0 and (self.used > limit or self.used == inf):
            raise OutOfMemory

    @property
    def is_exceeded(self) -> bool:
        """Whether there is less memory now than is in use, because something else uses more."""
        return self.used > self._limit()

    def take_over(self, other: "Memory") -> None:
        """Have in use what another memory has, as if it had been filled here."""
        self.used, self.steps, self._by_process = other.used, other.steps, other._by_process  # noqa: SLF001 - of its own class
        self._on_change(min(self.used, max(self._limit(), 0.0)))

    @contextmanager
    def freed_at_end(self, process: int, now: Callable[[], float]) -> Iterator[None]:
        """Free at the end of a program what it has left in use; `process` is the one in which it runs, `now` returns the time."""
        before = self._by_process[process]
        try:
            yield
        finally:
            added = self._by_process[process] - before
            if 0 < added < inf:
                self.change(-added, process, now())

    def seconds_to_fill(self, size: float) -> float:
        """Return how long a program fills memory: what there is, if that is less."""
        size = min(size, self._limit() - self.used)
        return 0.0 if size == inf else max(size, 0.0) / FILL_RATE
