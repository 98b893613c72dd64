"""How long to rest after a failure, before trying again what is tried forever."""

from typing import Final

from apimachinery.chance import Chance, fraction
from apimachinery.clock import Clock

FIRST: Final = 0.8
LONGEST: Final = 30.0
FORGOTTEN_AFTER: Final = 120.0
"""Seconds; upstream's, of reflectors."""


class Pauses:
    """Twice as long each time, and by chance up to twice that; after a long calm from the beginning."""

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self._clock = clock
        self._chance = chance
        self._next = FIRST
        self._last = clock.monotonic()

    def next(self) -> float:
        now = self._clock.monotonic()
        if now - self._last >= FORGOTTEN_AFTER:
            self._next = FIRST
        self._last = now
        pause = self._next
        self._next = min(pause * 2.0, LONGEST)
        return pause * (1.0 + fraction(self._chance))
