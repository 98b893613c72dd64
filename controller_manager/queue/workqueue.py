"""Work queues as in client-go: the queue between event handlers and workers, delayed keys, and backoff after failures."""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from mockube.apimachinery.clock import Clock, Timer
from mockube.controller_manager.client.flowcontrol import Rate, TokenBucket

K = TypeVar("K", bound=Hashable)


class QueueMetrics(Protocol):
    """Receives every step of a key."""

    def add(self, key: Hashable) -> None:
        """The key waits for a worker."""

    def get(self, key: Hashable) -> None: ...

    def done(self, key: Hashable) -> None: ...


class WorkQueue(Generic[K]):
    """Each key once, and never with two workers. Bounded by the number of keys."""

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
                # It was woken for a key, which another worker has to take instead.
                _wake(self._takers.popleft())
            raise


def _wake(taker: "asyncio.Future[None]") -> None:
    if not taker.done():
        taker.set_result(None)


class DelayingQueue(Generic[K]):
    """Delayed keys, each once, at the earliest of its due times: a heap by due time on the injected clock."""

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
        try:
            while self._heap and self._heap[0][0] <= now:
                due, _, key = heapq.heappop(self._heap)
                if self._due.get(key) == due:
                    del self._due[key]
                    self._add(key)
        finally:
            self._set_timer()


class _Burst:
    __slots__ = ("due", "until")

    def __init__(self, *, due: float, until: float) -> None:
        self.due = due
        self.until = until


class Debouncer(Generic[K]):
    """Adds a key when its object has been quiet for a while, and at the latest after a maximum delay.

    Each change restarts its key's wait. The time is only checked when the timer fires, so that a change costs little.
    """

    def __init__(self, add: Callable[[K], None], clock: Clock) -> None:
        """`add` is called with a key when its wait is over."""
        self._add = add
        self._clock = clock
        self._delaying = DelayingQueue[K](self._look, clock)
        self._bursts: dict[K, _Burst] = {}

    def add_after_quiet(self, key: K, *, quiet: float, max_delay: float) -> None:
        """Add the key after `quiet` seconds without a change, and after `max_delay` seconds at the latest."""
        now = self._clock.monotonic()
        burst = self._bursts.get(key)
        if burst is None:
            self._bursts[key] = _Burst(due=now + quiet, until=now + max_delay)
            self._delaying.add_after(key, quiet)
        else:
            burst.due = min(now + quiet, burst.until)

    def close(self) -> None:
        """Drop every key, and accept no new ones."""
        self._delaying.close()
        self._bursts.clear()

    def _look(self, key: K) -> None:
        rest = self._bursts[key].due - self._clock.monotonic()
        if rest > 0:
            self._delaying.add_after(key, rest)
            return
        del self._bursts[key]
        self._add(key)


BASE_SECONDS: Final = 0.005
MAX_SECONDS: Final = 1000.0
OVERALL: Final = Rate(qps=10.0, burst=100)
"""The limit of retries over all keys of a queue."""


class Retries(Struct, frozen=True):
    """Seconds that a key that failed waits: first, and at most."""

    base: float = BASE_SECONDS
    max_seconds: float = MAX_SECONDS


DEFAULT_RETRIES: Final = Retries()


class Backoff(Generic[K]):
    """Exponential backoff per key."""

    def __init__(self, base: float = BASE_SECONDS, max_seconds: float = MAX_SECONDS) -> None:
        self._base = base
        self._max_seconds = max_seconds
        self._failures: dict[K, int] = {}

    def fail(self, key: K) -> float:
        """Count a failure; returns the seconds to wait."""
        before = self._failures.get(key, 0)
        self._failures[key] = before + 1
        # A large exponent would overflow, and is beyond the limit anyway.
        return self._max_seconds if before > 60 else min(self._base * 2**before, self._max_seconds)

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)


class RateLimiter(Generic[K]):
    """client-go's default rate limiter: a key's own backoff, or the bucket's wait if that is longer."""

    def __init__(self, clock: Clock, retries: Retries = DEFAULT_RETRIES) -> None:
        self._backoff = Backoff[K](retries.base, retries.max_seconds)
        self._bucket = TokenBucket(OVERALL, clock)

    def when(self, key: K) -> float:
        return max(self._backoff.fail(key), self._bucket.take())

    def forget(self, key: K) -> None:
        self._backoff.forget(key)
