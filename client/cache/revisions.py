"""The revision that a cache has reached, and the callers that wait for a later one."""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable
from typing import Final, NamedTuple

from mockube.client.metrics.informers import InformerStats
from mockube.component_base.clock import Clock

EXPIRY_SECONDS: Final = 300.0
"""The time after which no component waits for its own writes any more; upstream's timeout of expectations."""


class _Waiter(NamedTuple):
    revision: int
    number: int
    started_at: float
    done: asyncio.Future[None]


class RevisionTracker:
    """The revision that a cache has reached, and the callers that wait for a later one."""

    def __init__(self, clock: Clock, counts: InformerStats) -> None:
        self._clock = clock
        self._counts = counts
        self._waiters: list[_Waiter] = []  # a heap: the lowest revision is first
        self._numbers = itertools.count()
        self.revision = 0

    def wait_for(self, revision: int) -> Awaitable[None]:
        """Return a future that is done when the cache reaches the revision, or the server has another history."""
        done = asyncio.get_running_loop().create_future()
        if self.revision >= revision:
            done.set_result(None)
        else:
            waiter = _Waiter(revision, next(self._numbers), self._clock.monotonic(), done)
            heapq.heappush(self._waiters, waiter)
        return done

    def reach(self, revision: int) -> None:
        """Set the revision. A lower one belongs to another history, which ends all waits for the old one."""
        is_another_history = revision < self.revision
        self.revision = self._counts.revision.value = revision
        while self._waiters and (is_another_history or self._waiters[0].revision <= revision):
            self._release(heapq.heappop(self._waiters))

    def _release(self, waiter: _Waiter) -> None:
        if not waiter.done.done():  # its caller has not cancelled it
            waiter.done.set_result(None)
            self._counts.lag.observe(self._clock.monotonic() - waiter.started_at)
