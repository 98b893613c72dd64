"""Rate limits and backoff, as in client-go's util/flowcontrol: a token bucket, and an exponential backoff with jitter."""

from typing import Final

from msgspec import Struct

from mockube.apimachinery.randomness import Random, fraction
from mockube.component_base.clock import Clock


class Rate(Struct, frozen=True, kw_only=True):
    qps: float
    burst: int


class TokenBucket:
    """A token bucket whose callers wait for tokens in the order of their calls."""

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._tokens = float(rate.burst)
        self._refilled_at = clock.monotonic()

    def take(self) -> float:
        """Take a token, and return the seconds to wait before its use."""
        now = self._clock.monotonic()
        refilled = self._tokens + (now - self._refilled_at) * self._rate.qps
        self._tokens = min(refilled, float(self._rate.burst)) - 1.0
        self._refilled_at = now
        return max(0.0, -self._tokens / self._rate.qps)


INITIAL_BACKOFF: Final = 0.8
MAX_BACKOFF: Final = 30.0
BACKOFF_RESET_SECONDS: Final = 120.0
"""The time without a failure after which the backoff starts again. All three are those of client-go's reflectors, in seconds."""


class Backoff:
    """Exponential backoff with jitter: delays double, and are randomized up to twice as long; reset after a long calm."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._next = INITIAL_BACKOFF
        self._last = clock.monotonic()

    def next(self) -> float:
        now = self._clock.monotonic()
        if now - self._last >= BACKOFF_RESET_SECONDS:
            self._next = INITIAL_BACKOFF
        self._last = now
        delay = self._next
        self._next = min(delay * 2.0, MAX_BACKOFF)
        return delay * (1.0 + fraction(self._random))
