"""Work queues as in client-go: the queue between event handlers and workers, delayed keys, and rate-limited retries."""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from mockube.client.flowcontrol import Rate, TokenBucket
from mockube.component_base.clock import Clock, Timer

K = TypeVar("K", bound=Hashable)


class QueueMetrics(Protocol):
    """Is notified when a key is added to a queue, taken by a worker, and done."""

    def add(self, key: Hashable) -> None: ...

    def get(self, key: Hashable) -> None: ...

    def done(self, key: Hashable) -> None: ...


class WorkQueue(Generic[K]):
    """A queue that contains each key once, and gives it to one worker at a time."""

    def __init__(self, metrics: QueueMetrics) -> None:
        self._metrics = metrics
        self._order: deque[K] = deque()
        self._dirty: set[K] = set()
        """The keys to process. A key that is also in `_processing` is queued when its worker is done."""
        self._processing: set[K] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """Return the number of keys that wait for a worker."""
        return len(self._order)

    def add(self, key: K) -> None:
        """Add a key: it is processed after this call, even if it is being processed now. A closed queue ignores it."""
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        self._metrics.add(key)
        if key not in self._processing:
            self._enqueue(key)

    async def take(self) -> K | None:
        """Wait for the next key; no other worker gets it before `done` is called. None if the queue is closed."""
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
            self._enqueue(key)

    def close(self) -> None:
        """Close the queue: it accepts and returns no more keys. The next leader lists all objects."""
        self._closed = True
        while self._waiters:
            _wake(self._waiters.popleft())

    def _enqueue(self, key: K) -> None:
        self._order.append(key)
        if self._waiters:
            _wake(self._waiters.popleft())

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif self._order and self._waiters:
                # It was woken for a key; wake another worker for it.
                _wake(self._waiters.popleft())
            raise


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class DelayingQueue(Generic[K]):
    """A queue that adds each key once after a delay, at the earliest of its due times."""

    def __init__(self, add: Callable[[K], None], clock: Clock) -> None:
        """Create an empty queue; `add` is called with each key when it is due."""
        self._add = add
        self._clock = clock
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        """The keys by due time. An entry whose time differs from that in `_due` is outdated and ignored."""
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

    def discard(self, key: K) -> None:
        """Drop a key that waits, if it does."""
        self._due.pop(key, None)

    def close(self) -> None:
        """Drop all keys, and accept no more."""
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
            self._timer = self._clock.call_later(delay, self._add_due_keys)

    def _add_due_keys(self) -> None:
        # The timer was set for the first entry, and may expire a rounding error early.
        now = max(self._clock.monotonic(), self._heap[0][0])
        try:
            while self._heap and self._heap[0][0] <= now:
                due, _, key = heapq.heappop(self._heap)
                if self._due.get(key) == due:
                    del self._due[key]
                    self._add(key)
        finally:
            self._set_timer()


class _PendingKey:
    __slots__ = ("deadline", "due")

    def __init__(self, *, due: float, deadline: float) -> None:
        self.due = due
        self.deadline = deadline


class Debouncer(Generic[K]):
    """A queue that adds a key when it was not changed for a while, and at the latest after a maximum delay.

    Each change restarts the wait of its key. The time is only checked when the timer fires, so that a change is cheap.
    """

    def __init__(self, add: Callable[[K], None], clock: Clock) -> None:
        """Create an empty queue; `add` is called with each key when its wait is over."""
        self._add = add
        self._clock = clock
        self._delaying = DelayingQueue[K](self._add_if_due, clock)
        self._pending: dict[K, _PendingKey] = {}

    def add_after_quiet(self, key: K, *, quiet: float, max_delay: float) -> None:
        """Add the key after `quiet` seconds without a change, and after `max_delay` seconds at the latest."""
        now = self._clock.monotonic()
        pending = self._pending.get(key)
        if pending is None:
            self._pending[key] = _PendingKey(due=now + quiet, deadline=now + max_delay)
            self._delaying.add_after(key, quiet)
        else:
            pending.due = min(now + quiet, pending.deadline)

    def close(self) -> None:
        """Drop all keys, and accept no more."""
        self._delaying.close()
        self._pending.clear()

    def _add_if_due(self, key: K) -> None:
        remaining = self._pending[key].due - self._clock.monotonic()
        if remaining > 0:
            self._delaying.add_after(key, remaining)
            return
        del self._pending[key]
        self._add(key)


BASE_DELAY: Final = 0.005
MAX_DELAY: Final = 1000.0
"""The delays of client-go (util/workqueue/default_rate_limiters.go), in seconds."""
RETRY_RATE: Final = Rate(qps=10.0, burst=100)
"""The rate limit of retries for all keys of a queue; client-go's default."""


class RetryBackoff(Struct, frozen=True):
    """The delays in seconds of a failed key: after the first failure, and at most."""

    base: float = BASE_DELAY
    max_seconds: float = MAX_DELAY


DEFAULT_RETRY_BACKOFF: Final = RetryBackoff()


class KeyBackoff(Generic[K]):
    """Exponential backoff per key; client-go's item exponential failure rate limiter."""

    def __init__(self, base: float = BASE_DELAY, max_seconds: float = MAX_DELAY) -> None:
        self._base = base
        self._max_seconds = max_seconds
        self._failures: dict[K, int] = {}

    def fail(self, key: K) -> float:
        """Count a failure, and return the delay in seconds until the retry."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # A large exponent would overflow, and exceeds the maximum anyway.
        return self._max_seconds if failures > 60 else min(self._base * 2**failures, self._max_seconds)

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)


class RateLimiter(Generic[K]):
    """client-go's default controller rate limiter: the longer of the key's backoff and the wait for a token."""

    def __init__(self, clock: Clock, retries: RetryBackoff = DEFAULT_RETRY_BACKOFF) -> None:
        self._backoff = KeyBackoff[K](retries.base, retries.max_seconds)
        self._bucket = TokenBucket(RETRY_RATE, clock)

    def when(self, key: K) -> float:
        """Count a failure of the key, and return the delay in seconds until the retry."""
        return max(self._backoff.fail(key), self._bucket.take())

    def forget(self, key: K) -> None:
        self._backoff.forget(key)
