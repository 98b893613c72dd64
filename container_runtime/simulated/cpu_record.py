"""The CPU that a container has used in the last seconds, as a kubelet measures it."""

from math import floor, inf
from typing import Final

WINDOW: Final = 15
"""The seconds over which the CPU is averaged: metrics-server's resolution."""
_KEPT: Final = 4 * WINDOW
_QUOTA_PERIOD: Final = 0.1
"""The period of a CPU quota in seconds. What a container does not use in it is lost."""
QUOTA_SLACK: Final = 0.01
"""The cores above its quota that a container with several processes may use: the kernel lets a core keep a millisecond of each period."""
_BUSY_SHARE: Final = 0.8
"""The part of the time of a request in which its server uses the CPU, if nothing limits it."""


class CpuRecord:
    def __init__(self) -> None:
        self._by_second: dict[int, float] = {}
        self._began = -inf
        """When the container began to work, after a time without any."""
        self._ends = -inf
        self._duration = 0.0
        """The end and the duration of what was recorded last."""
        self._quota_until = 0.0
        """The time until which the quota is used up."""
        self.steady = 0.0
        """The cores that what runs now uses until it ends."""

    def add(self, start: float, end: float, busy: float) -> None:
        """Record seconds of CPU that were used evenly during a time."""
        first, last = floor(max(start, end - WINDOW)), floor(end)
        if start - self._ends >= WINDOW:
            self._began = start
        self._ends, self._duration = max(end, self._ends), end - start
        for second in range(first, last + 1):
            self._by_second[second] = self._by_second.get(second, 0.0) + busy / (last - first + 1)
        if len(self._by_second) > _KEPT:
            self._by_second = {
                second: busy for second, busy in self._by_second.items() if second >= last - WINDOW
            }

    def cores(self, now: float) -> float:
        """Return the average of the last complete seconds, with what runs now.

        A container that begins to work is measured for a whole window before that is known, as by metrics-server.
        """
        if now < self._began + WINDOW:
            return self.steady
        is_behind = 1.0 < now - self._ends <= self._duration  # what follows will be recorded later
        present = floor(self._ends if is_behind else now)
        recent = (busy for second, busy in self._by_second.items() if present - WINDOW <= second < present)
        return sum(recent) / WINDOW + self.steady

    def duration(self, now: float, busy: float, limit: float) -> float:
        """Return how long a request takes for which a server is busy, and use up the quota of a container with a limit."""
        duration = busy / _BUSY_SHARE
        if limit < inf:
            self._quota_until = max(self._quota_until, now - _QUOTA_PERIOD) + busy / (limit + QUOTA_SLACK)
            duration = max(duration, self._quota_until - now)
        return duration
