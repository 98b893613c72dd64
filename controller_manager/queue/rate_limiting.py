"""The delay of a key that failed: exponential per key, and limited over all keys by a token bucket."""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.client.flowcontrol import Rate, TokenBucket

K = TypeVar("K", bound=Hashable)

BASE_SECONDS: Final = 0.005
LONGEST_SECONDS: Final = 1000.0
OVERALL: Final = Rate(qps=10.0, burst=100)
"""Retries over all keys of a queue."""


class Retries(Struct, frozen=True):
    """Seconds that a key that failed waits: first, and at most."""

    base: float = BASE_SECONDS
    max_seconds: float = LONGEST_SECONDS


DEFAULT_RETRIES: Final = Retries()


class Backoff(Generic[K]):
    """Exponential backoff per key."""

    def __init__(self, base: float = BASE_SECONDS, max_seconds: float = LONGEST_SECONDS) -> None:
        self._base = base
        self._max_seconds = max_seconds
        self._failures: dict[K, int] = {}

    def fail(self, key: K) -> float:
        """Count a failure; returns the seconds to wait."""
        before = self._failures.get(key, 0)
        self._failures[key] = before + 1
        # A large exponent would be no float, and is beyond the limit anyway.
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
