"""The CPU that a command uses while it is interpreted in advance. Pure."""

from math import inf

from mockube.container_runtime.load import NO_LOAD, RunLoad
from mockube.container_runtime.simulated.shell.process import Effect, Host, RepeatedIteration, Sleep


class CpuMeter:
    def __init__(self) -> None:
        self._seconds = 0.0
        self._busy_seconds = 0.0
        self._last_cores: float | None = None
        """The cores of what goes on without an end; None before that."""

    def count(self, effect: Effect) -> None:
        if isinstance(effect, RepeatedIteration) or (isinstance(effect, Sleep) and effect.seconds == inf):
            self._last_cores = effect.cores
        elif isinstance(effect, Sleep):
            self._seconds += effect.seconds
            self._busy_seconds += effect.seconds * effect.cores

    def load(self, host: Host) -> RunLoad:
        """Return what the command uses: on the average, and then what it uses without an end."""
        average = self._busy_seconds / self._seconds if self._seconds else 0.0
        last = average if self._last_cores is None else self._last_cores
        memory = tuple(host.memory.steps)
        if not memory and not average and not last:
            return NO_LOAD
        return RunLoad(
            memory=memory,
            cores=last,
            early_cores=average,
            steady_from=0.0 if self._last_cores is None else self._seconds,
        )
