"""How far a cache has come, and who waits until it has come further."""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable
from typing import NamedTuple

from apimachinery.clock import Clock
from controller_manager.runtime.informer_metrics import InformerCounts


class _Waiter(NamedTuple):
    revision: int
    number: int
    since: float
    done: asyncio.Future[None]


class Progress:
    def __init__(self, clock: Clock, counts: InformerCounts) -> None:
        self._clock = clock
        self._counts = counts
        self._waiters: list[_Waiter] = []  # a heap: who waits for less is first
        self._numbers = itertools.count()
        self.revision = 0

    def until(self, revision: int) -> Awaitable[None]:
        """Done once that revision is reached, or none that was known before counts any more."""
        done = asyncio.get_running_loop().create_future()
        if self.revision >= revision:
            done.set_result(None)
        else:
            waiter = _Waiter(revision, next(self._numbers), self._clock.monotonic(), done)
            heapq.heappush(self._waiters, waiter)
        return done

    def reach(self, revision: int) -> None:
        """A lower one than before is of another history, in which what was waited for will not come."""
        is_another_history = revision < self.revision
        self.revision = self._counts.revision = revision
        while self._waiters and (is_another_history or self._waiters[0].revision <= revision):
            self._release(heapq.heappop(self._waiters))

    def _release(self, waiter: _Waiter) -> None:
        if not waiter.done.done():  # nor cancelled by who waited
            waiter.done.set_result(None)
            self._counts.lag.observe(self._clock.monotonic() - waiter.since)
