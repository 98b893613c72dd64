"""What was observed of the probes and hooks whose commands run in real time, because they use the network, API objects,
or files that others write. Pure.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from .probing import Probe, ProbeCount, ProbeTimes

Hook = Literal["postStart", "preStop"]

_MAX_CHANGES: Final = 100
"""The number of changes of a probe's result that are kept; earlier ones have been acted on."""


class ProbeResult(Struct, frozen=True, kw_only=True):
    """The result of an attempt of a probe."""

    is_success: bool | None = True
    """None for an attempt without a result, which counts neither as a success nor as a failure."""
    message: str = ""
    """The message of the Event; "" for a success without a warning."""
    seconds: float = 0.0
    """Its duration."""


Results = tuple[tuple[float, ProbeResult], ...]
"""Results, each with the time from which on it is that of an attempt, in seconds from the start of the run."""
SUCCESS: Final = ProbeResult()
NOT_PROBED: Final = ProbeResult(is_success=None)
"""The result of an attempt that was not made yet."""
NOT_OBSERVED: Final[Results] = ((0.0, NOT_PROBED),)


class HookResult(Struct, frozen=True, kw_only=True):
    """The end of a hook."""

    is_success: bool = True
    seconds: float = 0.0
    """Its duration; infinite if it does not end."""
    began: datetime | None = None
    """When it began, if it ran in real time."""
    is_pending: bool = False
    """Whether its command has to run, or runs, in real time."""


HOOK_SUCCESS: Final = HookResult()
PENDING_HOOK: Final = HookResult(seconds=float("inf"), is_pending=True)


class ObservedRun(Struct, frozen=True, kw_only=True):
    """What was observed of a container's latest run."""

    restarts: int = -1
    """The number of restarts before the run; -1 before the first one."""
    probes: Mapping[Probe, Results] = {}
    """The results of the probes that run in real time, up to now."""
    hooks: Mapping[Hook, HookResult] = {}
    """The ends of the hooks that run in real time."""

    def results(self, probe: Probe, restarts: int) -> Results | None:
        """Return the results of a probe in a run; None if the probe does not run in real time."""
        results = self.probes.get(probe)
        return results if results is None or restarts == self.restarts else NOT_OBSERVED

    def hook(self, hook: Hook, restarts: int) -> HookResult | None:
        """Return the end of a hook in a run; None if it does not run in real time."""
        result = self.hooks.get(hook)
        return result if result is None or restarts == self.restarts else PENDING_HOOK


class ProbeHistory:
    """The results of the attempts of one probe during a run, up to now."""

    def __init__(self, times: ProbeTimes) -> None:
        self._times = times
        self._changes: list[tuple[float, ProbeResult]] = []
        self._end = 0.0
        """The time up to which the last of the changes holds."""
        self._count = ProbeCount(times)

    def seed(self, seconds: float) -> None:
        """Count the probe as successful up to now, as the status says that it was when the observation began."""
        self._changes, self._end = [(0.0, SUCCESS)], seconds
        self._count.add(success=True)

    def add(self, at: float, result: ProbeResult) -> bool:
        """Add the result of an attempt; return whether it may have an effect."""
        half = self._times.period / 2
        begin = max(at - half, 0.0)
        if begin - self._end > half / 2:  # attempts before it were left out
            self._change(self._end, NOT_PROBED)
        self._change(begin, result)
        self._end = at + half
        is_success = bool(result.is_success)
        self._count.add(success=is_success)
        threshold = self._times.successes if is_success else self._times.failures
        return self._count.run <= threshold

    def _change(self, at: float, result: ProbeResult) -> None:
        if not self._changes or self._changes[-1][1] != result:
            self._changes.append((at if self._changes else 0.0, result))
        if len(self._changes) > _MAX_CHANGES:
            self._changes[: -_MAX_CHANGES + 1] = [(0.0, NOT_PROBED)]

    def results(self) -> Results:
        return (*self._changes, (self._end, NOT_PROBED)) if self._changes else NOT_OBSERVED
