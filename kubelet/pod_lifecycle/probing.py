"""The settings and thresholds of probes, and the messages of failed probes. Pure. Their results are in `probe_results`."""

from enum import Enum
from math import ceil, floor
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.tree import ReadOnlyTree


class Probe(Enum):
    """The kinds of probes; the value is the field of the container."""

    STARTUP = "startupProbe"
    READINESS = "readinessProbe"
    LIVENESS = "livenessProbe"

    @property
    def title(self) -> str:
        return _TITLES[self]


_TITLES: Final = {Probe.STARTUP: "Startup", Probe.READINESS: "Readiness", Probe.LIVENESS: "Liveness"}


_WARNING: Final = " probe warning: "
_WARNING_END: Final = max(map(len, _TITLES.values())) + len(_WARNING)


class ProbeTimes(Struct, frozen=True):
    """The times of a probe in seconds, and its thresholds: the number of equal results in a row."""

    initial_delay: int
    period: int
    timeout: int
    successes: int
    failures: int


def probe_times(probe: ReadOnlyTree) -> ProbeTimes:
    return ProbeTimes(
        initial_delay=probe.get("initialDelaySeconds") or 0,
        period=probe.get("periodSeconds") or 10,
        timeout=probe.get("timeoutSeconds") or 1,
        successes=probe.get("successThreshold") or 1,
        failures=probe.get("failureThreshold") or 3,
    )


def first_attempt(probe: Probe, times: ProbeTimes, begin: float) -> float:
    """Return when a kubelet first runs a probe that may run from `begin` on, in seconds from the container's start.

    Its worker has a ticker that starts before the container does, so a tick that is as late as the initial delay comes
    too early. A readiness probe is also run, and its ticker started again, when the container has started up.
    """
    if probe is Probe.READINESS:
        ticks = ceil(max(times.initial_delay - begin, 0.0) / times.period)
        return begin + ticks * times.period
    return (floor(max(begin, times.initial_delay) / times.period) + 1) * times.period


class ProbeCount(Struct):
    """The latest equal results in a row of a probe."""

    times: ProbeTimes
    is_success: bool | None = None
    run: int = 0

    def add(self, *, success: bool) -> bool | None:
        """Return the decided result; None if more results in a row are needed."""
        self.run = self.run + 1 if success == self.is_success else 1
        self.is_success = success
        threshold = self.times.successes if success else self.times.failures
        return success if self.run >= threshold else None


class UnresolvedPort(Exception):
    """A probe names a port that its container does not declare."""


def resolve_port(value: Any, container: ReadOnlyTree) -> int:
    """Return the number of a probe's port, which may be the name of a port of the container."""
    if isinstance(value, int):
        return value
    for port in container.get("ports") or ():
        if port.get("name") == value:
            return int(port["containerPort"])
    raise UnresolvedPort(f"port {quote(str(value))} not found")


def unhealthy_message(probe: Probe, output: str) -> str:
    return f"{probe.title} probe failed: {output}"


def warning_message(probe: Probe, output: str) -> str:
    return f"{probe.title}{_WARNING}{output}"


def event_reason(message: str) -> str:
    """Return the reason of the Event with the message of an attempt."""
    return "ProbeWarning" if _WARNING in message[:_WARNING_END] else "Unhealthy"


def errored_message(probe: Probe, error: str) -> str:
    return f"{probe.title} probe errored and resulted in unknown state: {error}"


def restart_message(probe: Probe, container: str) -> str:
    return f"Container {container} failed {probe.title.lower()} probe, will be restarted"
