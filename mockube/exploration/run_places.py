"""How many runs take place at a time: more while the processors are idle, because most operators mostly wait for their own timers."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

from mockube.component_base.clock import Clock

FEWEST: Final = 3
MOST: Final = 12
"""Runs on each core, if no number is given."""
WAITING: Final = 6
"""The same of those that mostly wait."""
PROC: Final = Path("/proc")
_SECONDS: Final = 1.0
"""How often the processors are looked at."""
_IDLE: Final = 0.4
_BUSY: Final = 0.1
"""The share of the processors' time that is left, above which there are more runs, and below which there are fewer."""
_LATE_SECONDS: Final = 0.1
"""How late this process may get to run: a limit of a container does not show in the times of the processors."""
_FREE_MEMORY: Final = 0.25
"""The share of memory that is left for others."""


def cores() -> int:
    return os.cpu_count() or 1


class Machine(NamedTuple):
    """What is left of a machine."""

    idle_seconds: float
    """Of all processors, since it started."""
    free_memory: float
    """The share that is available."""

    @classmethod
    def read(cls, proc: Path = PROC) -> Self | None:
        """Return what Linux says; None elsewhere."""
        try:
            processors = (proc / "stat").read_text().split("\n", 1)[0].split()
            memory = dict(line.split(":") for line in (proc / "meminfo").read_text().splitlines())
        except FileNotFoundError:
            return None
        available, total = (int(memory[name].split()[0]) for name in ("MemAvailable", "MemTotal"))
        idle, waiting_for_disks = map(int, processors[4:6])
        return cls((idle + waiting_for_disks) / os.sysconf("SC_CLK_TCK"), available / total)


class RunPlaces:
    """The places of runs: `async with places.place():` waits for one."""

    def __init__(self, jobs: int, clock: Clock) -> None:
        self._cores = cores()
        self._fewest, self._most = jobs or FEWEST * self._cores, jobs or MOST * self._cores
        self._clock = clock
        self._in_progress, self._waiting = Counter[bool](), Counter[bool]()
        """How many runs have a place, and how many wait for one: urgent ones, and others."""
        self._changed = asyncio.Event()
        self.count = self._fewest

    @asynccontextmanager
    async def place(self, *, is_urgent: bool = False) -> AsyncIterator[None]:
        """Hold a place. Urgent runs, of what may be a finding, get half of the places before the others, which find more."""
        self._waiting[is_urgent] += 1
        try:
            while not self._is_free(is_urgent=is_urgent):
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._waiting[is_urgent] -= 1
            self._changed.set()
        self._in_progress[is_urgent] += 1
        try:
            yield
        finally:
            self._in_progress[is_urgent] -= 1
            self._changed.set()

    def _is_free(self, *, is_urgent: bool) -> bool:
        has_turn = is_urgent == (2 * self._in_progress[True] < self.count) or not self._waiting[not is_urgent]
        return self._in_progress.total() < self.count and has_turn

    async def adapt_to_machine(self, on_new_place: Callable[[], None]) -> None:
        """Adapt the number of places each second, unless it is fixed or the system does not say how busy it is."""
        while (before := Machine.read()) is not None and self._fewest < self._most:
            began = self._clock.monotonic()
            await self._clock.sleep(_SECONDS)
            seconds, now = self._clock.monotonic() - began, Machine.read()
            if now is not None:
                idle = (now.idle_seconds - before.idle_seconds) / (seconds * self._cores)
                is_late = seconds > _SECONDS + _LATE_SECONDS
                self.adapt(0.0 if is_late else idle, now.free_memory, on_new_place)

    def adapt(self, idle: float, free_memory: float, on_new_place: Callable[[], None]) -> None:
        if idle > _IDLE and free_memory > _FREE_MEMORY:
            for _ in range(min(self._cores, self._most - self.count)):
                self.count += 1
                on_new_place()
            self._changed.set()
        elif (idle < _BUSY or free_memory < _FREE_MEMORY) and self.count > self._fewest:
            self.count -= 1  # if it is taken, until that run ends
