"""Limit rates: a token bucket for requests, and a backoff that grows with each failure. As client-go's util/flowcontrol."""

from typing import Final

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random, fraction


class Rate(Struct, frozen=True, kw_only=True):
    qps: float
    burst: int


class TokenBucket:
    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._tokens = float(rate.burst)
        self._at = clock.monotonic()

    def take(self) -> float:
        """Take a token; returns the seconds to wait before using it, in the order of the calls."""
        now = self._clock.monotonic()
        refilled = self._tokens + (now - self._at) * self._rate.qps
        self._tokens = min(refilled, float(self._rate.burst)) - 1.0
        self._at = now
        return max(0.0, -self._tokens / self._rate.qps)


FIRST: Final = 0.8
MAX_BACKOFF: Final = 30.0
BACKOFF_RESET_SECONDS: Final = 120.0
"""Seconds; upstream's, of reflectors."""


class Backoff:
    """Twice as long each time, and by chance up to twice that; after a long calm from the beginning."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._next = FIRST
        self._last = clock.monotonic()

    def next(self) -> float:
        now = self._clock.monotonic()
        if now - self._last >= BACKOFF_RESET_SECONDS:
            self._next = FIRST
        self._last = now
        pause = self._next
        self._next = min(pause * 2.0, MAX_BACKOFF)
        return pause * (1.0 + fraction(self._random))
