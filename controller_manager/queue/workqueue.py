"""The work queue between event handlers and workers: each key once, and never with two workers.

Retries and delays are not its concern.
"""

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)


class QueueMetrics(Protocol):
    """Receives every step of a key."""

    def add(self, key: Hashable) -> None:
        """It waits for a worker."""

    def get(self, key: Hashable) -> None: ...

    def done(self, key: Hashable) -> None: ...


class WorkQueue(Generic[K]):
    """Bounded by the number of keys: a key that waits already is not added twice."""

    def __init__(self, metrics: QueueMetrics) -> None:
        self._metrics = metrics
        self._order: deque[K] = deque()
        self._dirty: set[K] = set()
        """Keys to process. One that is also in `_processing` is queued only when its worker is done."""
        self._processing: set[K] = set()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """Keys that wait for a worker."""
        return len(self._order)

    def add(self, key: K) -> None:
        """Add a key, which is reconciled after this call. A closed queue ignores it."""
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        self._metrics.add(key)
        if key not in self._processing:
            self._line_up(key)

    async def take(self) -> K | None:
        """Return the next key, which no other worker gets until `done` is called; None once the queue is closed."""
        while not self._order and not self._closed:
            await self._wait()
        if self._closed:
            return None
        key = self._order.popleft()
        self._dirty.remove(key)
        self._processing.add(key)
        self._metrics.get(key)
        return key

    def done(self, key: K) -> None:
        self._processing.remove(key)
        self._metrics.done(key)
        if key in self._dirty and not self._closed:
            self._line_up(key)

    def close(self) -> None:
        """Accept and return no more keys. Waiting keys are dropped: the next leader lists all objects."""
        self._closed = True
        while self._takers:
            _wake(self._takers.popleft())

    def _line_up(self, key: K) -> None:
        self._order.append(key)
        if self._takers:
            _wake(self._takers.popleft())

    async def _wait(self) -> None:
        taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except asyncio.CancelledError:
            if taker in self._takers:
                self._takers.remove(taker)
            elif self._order and self._takers:
                # It was woken for a key that it will not take: another worker has to.
                _wake(self._takers.popleft())
            raise


def _wake(taker: "asyncio.Future[None]") -> None:
    if not taker.done():
        taker.set_result(None)
