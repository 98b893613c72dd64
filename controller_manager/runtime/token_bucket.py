"""How often something may be done: so many a second, and so many at once after a rest. Never sleeps by itself."""

from dataclasses import dataclass

from apimachinery.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    qps: float
    burst: int


class TokenBucket:
    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._tokens = float(rate.burst)
        self._at = clock.monotonic()

    def take(self) -> float:
        """Take one, and tell how many seconds to wait before using it: whoever asks earlier goes earlier."""
        now = self._clock.monotonic()
        refilled = self._tokens + (now - self._at) * self._rate.qps
        self._tokens = min(refilled, float(self._rate.burst)) - 1.0
        self._at = now
        return max(0.0, -self._tokens / self._rate.qps)
