"""How fast a command works, by the time that it says it takes.

The clock of a cluster may advance in steps, and the machine may be slow: then a loop that sleeps for 10 ms runs less often than it
would. What it does stands for what it would have done since the last time.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock

from .cpu_record import WINDOW, CpuRecord

Backend = tuple[ReadOnlyTree, ReadOnlyTree]
"""A pod, and its container that answers."""
_MAX_WEIGHT: Final = 10_000.0
_RECORDED_SECONDS: Final = 0.5
"""The time after which the CPU of short waits is recorded."""


class ClientPace:
    """The time of one command that runs in real time, its requests, and the CPU that it uses."""

    def __init__(self, clock: Clock, cpu: CpuRecord | None = None) -> None:
        """The CPU that the command uses is recorded in `cpu`."""
        self.clock = clock
        self._now: Callable[[], float] = clock.monotonic
        self._cpu = CpuRecord() if cpu is None else cpu
        self._sent_at: float | None = None
        self._seconds = 0.0
        """The seconds that the command takes from one request to the next."""
        self._backends: Callable[[], Sequence[Backend]] = tuple
        self._recorded_at = self._now()
        self._unrecorded = 0.0
        self._busy = 0.0

    @contextmanager
    def waiting(self, seconds: float, cores: float) -> Iterator[None]:
        """Note that the command waits, or computes, during a block."""
        steady = cores if seconds >= WINDOW else 0.0
        self._cpu.steady += steady
        try:
            yield
        finally:
            self._cpu.steady -= steady
            if steady:
                self._recorded_at = self._now()
            else:
                self.pass_time(seconds, cores)

    def pass_time(self, seconds: float, cores: float) -> None:
        self._seconds += seconds
        self._unrecorded += seconds
        self._busy += seconds * cores
        if self._busy and self._now() - self._recorded_at >= _RECORDED_SECONDS:
            self._record()

    def _record(self) -> None:
        now = self._now()
        weight = max((now - self._recorded_at) / self._unrecorded, 1.0)
        self._cpu.add(self._recorded_at, now, self._busy * weight)
        self._recorded_at, self._unrecorded, self._busy = now, 0.0, 0.0

    def balance_among(self, backends: Callable[[], Sequence[Backend]]) -> None:
        """Note the pods and containers among which a Service balances the requests for which the next one stands."""
        self._backends = backends

    def backends(self) -> Sequence[Backend]:
        return self._backends()

    def weigh_request(self) -> tuple[float, float]:
        """Return for how many requests the present one stands, and the seconds since the last one."""
        now = self._now()
        gap = 0.0 if self._sent_at is None else now - self._sent_at
        weight = gap / self._seconds if gap and self._seconds else 1.0
        self._sent_at, self._seconds = now, 0.0
        return min(weight, _MAX_WEIGHT), gap


CLIENT: Final[ContextVar[ClientPace | None]] = ContextVar("client", default=None)
"""The pace of the command on whose behalf a request is answered."""
