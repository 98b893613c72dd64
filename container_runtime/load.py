"""What one run of a container uses of its node: memory and CPU, over the time of the run. Pure."""

from math import inf
from typing import Final

from msgspec import Struct

FILL_RATE: Final = float(1 << 30)
"""The bytes of memory that a program fills in a second."""
OOM_KILLED: Final = "OOMKilled"
"""The reason of a container's end that used more memory than it may."""
RELIST_SECONDS: Final = 1.0
"""The period in which a kubelet lists the containers of its run-time: it never sees one running that ends within it."""


class MemoryStep(Struct, frozen=True):
    """The memory in use from a time on; infinite while programs fill it at `FILL_RATE`, whatever there is."""

    seconds: float
    size: float


class RunLoad(Struct, frozen=True, kw_only=True):
    memory: tuple[MemoryStep, ...] = ()
    """The memory in the order of time. There is none before the first step."""
    cores: float = 0.0
    """The cores that the run keeps busy if nothing limits it."""
    early_cores: float = 0.0
    """The same until `steady_from`."""
    steady_from: float = 0.0

    def cores_at(self, seconds: float) -> float:
        return self.cores if seconds >= self.steady_from else self.early_cores

    def memory_at(self, seconds: float) -> float:
        size = 0.0
        for step in self.memory:
            if step.seconds > seconds:
                break
            size = size + (seconds - step.seconds) * FILL_RATE if step.size == inf else step.size
        return size

    def exceeds_at(self, limit: float) -> float | None:
        """Return the time at which the memory exceeds a limit; None if it never does.

        It is 0 for a time before a kubelet sees that the container runs.
        """
        size = 0.0
        for step in self.memory:
            if step.size == inf:
                return _visible(step.seconds + max(limit - size, 0.0) / FILL_RATE)
            if step.size > limit:
                return _visible(step.seconds)
            size = step.size
        return None


def _visible(seconds: float) -> float:
    return seconds if seconds >= RELIST_SECONDS else 0.0


NO_LOAD: Final = RunLoad()


class Stats(Struct, frozen=True, kw_only=True):
    """What a container uses now, as ContainerStats of CRI."""

    cores: float
    memory: float
    """Bytes of its working set."""
