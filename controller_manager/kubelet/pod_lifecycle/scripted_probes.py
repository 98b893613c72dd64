"""The results of a simulated container's probes: unless scripted or known to fail, they succeed from the first attempt.

Times are in seconds from the start of a run. Pure.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil, inf
from typing import Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.pod_lifecycle.probe_handlers import NO_FAILURES, ProbeFailure
from mockube.controller_manager.kubelet.pod_lifecycle.probing import (
    Probe,
    ProbeTimes,
    first_attempt,
    probe_times,
    unhealthy_message,
)
from mockube.controller_manager.kubelet.pod_script import Script

_ROUNDING: Final = 1.0
"""A status has the second of a start; without it, a probe might succeed before the initial delay is over."""


class ProbedRun(Struct, frozen=True):
    """The times at which probes change a run that does not end for another reason; infinite means never."""

    started_at: float
    """The success of the startup probe."""
    ready_at: float
    unready_at: float
    killed_at: float
    killed_by: Probe

    @property
    def changes(self) -> tuple[float, ...]:
        return self.started_at, self.ready_at, self.unready_at, self.killed_at

    def is_ready(self, seconds: float) -> bool:
        return self.ready_at <= seconds < self.unready_at


def probed_run(
    container: ReadOnlyTree, script: Script, failures: Mapping[Probe, ProbeFailure] = NO_FAILURES
) -> ProbedRun | None:
    """Return the times of a container's probes; None if no probe is scripted, delayed or failing."""
    if not failures and not _is_scripted(container, script) and not _has_delayed_probes(container):
        return None
    times = tuple(
        probe_times(probe_spec) if (probe_spec := container.get(probe.value)) else None for probe in Probe
    )
    return _probed_run(times, result_changes(script, failures), _unknown_probes(failures), script.ready_after)


def result_changes(script: Script, failures: Mapping[Probe, ProbeFailure]) -> tuple[float, float, float]:
    """Return when the startup probe begins to succeed, and when the readiness and the liveness probe begin to fail."""
    return (
        inf if Probe.STARTUP in failures else script.startup_after,
        0.0 if Probe.READINESS in failures else script.fail_readiness_after,
        0.0 if Probe.LIVENESS in failures else script.fail_liveness_after,
    )


def _unknown_probes(failures: Mapping[Probe, ProbeFailure]) -> frozenset[Probe]:
    return frozenset(probe for probe, failure in failures.items() if failure.is_unknown)


def _is_scripted(container: ReadOnlyTree, script: Script) -> bool:
    if not script.has_probes:
        return False
    scripted = [
        (Probe.STARTUP, script.startup_after > 0),
        (Probe.READINESS, script.fail_readiness_after != inf),
        (Probe.LIVENESS, script.fail_liveness_after != inf),
    ]
    return any(is_set and container.get(probe.value) for probe, is_set in scripted)


def _has_delayed_probes(container: ReadOnlyTree) -> bool:
    """Return whether a probe's settings delay the container's startup or readiness."""
    readiness = container.get("readinessProbe")
    if container.get("startupProbe"):
        return True  # it is first run after its period
    if not readiness:
        return False
    return bool(readiness.get("initialDelaySeconds")) or (readiness.get("successThreshold") or 1) > 1


@lru_cache(maxsize=1024)
def _probed_run(
    times: tuple[ProbeTimes | None, ...],
    after: tuple[float, ...],
    unknown: frozenset[Probe],
    ready_after: float,
) -> ProbedRun:
    startup, readiness, liveness = times
    startup_after, fail_readiness_after, fail_liveness_after = after
    started_at = attempt_time(Probe.STARTUP, startup, 0.0, startup_after) if startup else 0.0
    startup_failed_at = _failure_time(Probe.STARTUP, startup, 0.0, 0.0) if startup and startup_after else inf
    if started_at > startup_failed_at or started_at == inf:
        killed_at = inf if Probe.STARTUP in unknown else startup_failed_at
        return ProbedRun(inf, inf, inf, killed_at, Probe.STARTUP)
    killed_at = inf
    if liveness and Probe.LIVENESS not in unknown:
        killed_at = _failure_time(Probe.LIVENESS, liveness, started_at, fail_liveness_after)
    ready_at, unready_at = max(started_at, ready_after), inf
    if readiness:
        successes = attempt_time(Probe.READINESS, readiness, started_at)
        ready_at = max(successes + (readiness.successes - 1) * readiness.period, ready_after)
        unready_at = _failure_time(Probe.READINESS, readiness, started_at, fail_readiness_after)
        ready_at = inf if unready_at <= ready_at or fail_readiness_after <= ready_at else ready_at
    return ProbedRun(started_at, ready_at, unready_at, killed_at, Probe.LIVENESS)


def attempt_time(probe: Probe, times: ProbeTimes, begin: float, after: float = 0.0) -> float:
    """Return the time of the first attempt at or after `after`, of a probe that may run from `begin` on."""
    if inf in (begin, after):
        return inf
    first = first_attempt(probe, times, begin)
    if begin < first and probe is Probe.READINESS:
        first += _ROUNDING
    return first + max(ceil((after - first) / times.period), 0) * times.period


def _failure_time(probe: Probe, times: ProbeTimes, begin: float, after: float) -> float:
    """Return the time at which the failure threshold is reached, if all attempts from `after` fail."""
    return attempt_time(probe, times, begin, after) + (times.failures - 1) * times.period


_FAILURE_OUTPUTS: Final = {
    "httpGet": "HTTP probe failed with statuscode: 500",
    "tcpSocket": "dial tcp: connect: connection refused",
    "grpc": 'service unhealthy (responded with "NOT_SERVING")',
    "exec": "",
}


def failure_message(
    container: ReadOnlyTree, probe: Probe, failures: Mapping[Probe, ProbeFailure] = NO_FAILURES
) -> str:
    """Return the event message of a failing probe."""
    if probe in failures:
        return failures[probe].message
    handler = container.get(probe.value) or {}
    return unhealthy_message(
        probe, next((text for name, text in _FAILURE_OUTPUTS.items() if name in handler), "")
    )
