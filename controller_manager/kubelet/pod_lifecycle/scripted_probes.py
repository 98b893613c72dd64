"""The results of a simulated container's probes: unless scripted, they succeed from the first attempt on.

In seconds from the start of a run. Pure.
"""

from functools import lru_cache
from math import ceil, inf
from typing import Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.pod_lifecycle.probing import (
    Probe,
    ProbeTimes,
    probe_times,
    unhealthy_message,
)
from mockube.controller_manager.kubelet.pod_lifecycle.script import Script


class ProbedRun(Struct, frozen=True):
    """One run of a container, if nothing else ends it; infinite is never."""

    started: float
    """When its startup probe has succeeded."""
    ready: float
    unready: float
    killed: float
    killed_by: Probe

    @property
    def changes(self) -> tuple[float, ...]:
        return self.started, self.ready, self.unready, self.killed

    def is_ready(self, seconds: float) -> bool:
        return self.ready <= seconds < self.unready


def probed_run(container: ReadOnlyTree, script: Script) -> ProbedRun | None:
    """None where the container has no scripted or delayed probes."""
    if not _is_scripted(container, script) and not _takes_time(container):
        return None
    times = tuple(
        probe_times(probe_spec) if (probe_spec := container.get(probe.value)) else None for probe in Probe
    )
    after = (script.startup_after, script.fail_readiness_after, script.fail_liveness_after)
    return _probed_run(times, after, script.ready_after)


def _is_scripted(container: ReadOnlyTree, script: Script) -> bool:
    if not script.has_probes:
        return False
    scripted = [
        (Probe.STARTUP, script.startup_after > 0),
        (Probe.READINESS, script.fail_readiness_after != inf),
        (Probe.LIVENESS, script.fail_liveness_after != inf),
    ]
    return any(is_set and container.get(probe.value) for probe, is_set in scripted)


def _takes_time(container: ReadOnlyTree) -> bool:
    """Whether a container is started or ready only some time after its start."""
    startup, readiness = container.get("startupProbe"), container.get("readinessProbe")
    if startup and startup.get("initialDelaySeconds"):
        return True
    if not readiness:
        return False
    return bool(readiness.get("initialDelaySeconds")) or (readiness.get("successThreshold") or 1) > 1


@lru_cache(maxsize=1024)
def _probed_run(
    times: tuple[ProbeTimes | None, ...], after: tuple[float, ...], ready_after: float
) -> ProbedRun:
    startup, readiness, liveness = times
    startup_after, fail_readiness_after, fail_liveness_after = after
    started = _first_try(startup, 0.0, startup_after) if startup else 0.0
    given_up = _failure_time(startup, 0.0, 0.0) if startup and startup_after else inf
    if started > given_up or started == inf:
        return ProbedRun(inf, inf, inf, given_up, Probe.STARTUP)
    killed = _failure_time(liveness, started, fail_liveness_after) if liveness else inf
    ready, unready = max(started, ready_after), inf
    if readiness:
        ready = max(_success_time(readiness, started), ready_after)
        unready = _failure_time(readiness, started, fail_readiness_after)
        ready = inf if unready <= ready or fail_readiness_after <= ready else ready
    return ProbedRun(started, ready, unready, killed, Probe.LIVENESS)


def _first_try(times: ProbeTimes, begin: float, after: float) -> float:
    """When a probe is tried first at or after a time."""
    first = max(begin, float(times.initial_delay))
    if after == inf:
        return inf
    return first if after <= first else first + ceil((after - first) / times.period) * times.period


def _success_time(times: ProbeTimes, begin: float) -> float:
    """When so many tries have succeeded that it counts."""
    return _first_try(times, begin, begin) + (times.successes - 1) * times.period


def _failure_time(times: ProbeTimes, begin: float, after: float) -> float:
    """When so many tries have failed that it counts, if they fail from a time on."""
    return _first_try(times, begin, after) + (times.failures - 1) * times.period


_OUTPUTS: Final = {
    "httpGet": "HTTP probe failed with statuscode: 500",
    "tcpSocket": "dial tcp: connect: connection refused",
    "grpc": 'service unhealthy (responded with "NOT_SERVING")',
    "exec": "",
}


def scripted_failure(container: ReadOnlyTree, probe: Probe) -> str:
    """The message of a failure."""
    handler = container.get(probe.value) or {}
    return unhealthy_message(probe, next((text for name, text in _OUTPUTS.items() if name in handler), ""))
