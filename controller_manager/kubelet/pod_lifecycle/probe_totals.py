"""The number of successful and failed probes of a container, and the durations of the successful ones. Pure."""

from collections.abc import Mapping
from math import ceil, inf
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.pod_lifecycle.probe_handlers import NO_FAILURES, ProbeFailure
from mockube.controller_manager.kubelet.pod_lifecycle.probing import Probe, ProbeTimes, probe_times
from mockube.controller_manager.kubelet.pod_lifecycle.scripted_probes import (
    attempt_time,
    probed_run,
    result_changes,
)
from mockube.controller_manager.kubelet.pod_script import Script

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the buckets in seconds: Prometheus' defaults."""


class ProbeTotals(Struct):
    """The results of one probe."""

    successful: int = 0
    failed: int = 0
    seconds: float = 0.0
    """The total duration of the successful probes."""
    bucket_counts: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    """The number of successful probes up to the bound of each bucket."""

    def add(self, *, success: bool, seconds: float) -> None:
        if not success:
            self.failed += 1
            return
        self.successful += 1
        self.seconds += seconds
        for index, bound in enumerate(BUCKETS):
            self.bucket_counts[index] += seconds <= bound


def simulated_totals(
    container: ReadOnlyTree,
    script: Script,
    seconds: float,
    failures: Mapping[Probe, ProbeFailure] = NO_FAILURES,
) -> Mapping[Probe, ProbeTotals]:
    """Return the results of a run's probes after `seconds` of the run; a simulated probe takes no time."""
    run = probed_run(container, script, failures)
    _, unready_after, unhealthy_after = result_changes(script, failures)
    started_at, killed_at = (0.0, inf) if run is None else (run.started_at, run.killed_at)
    end = min(seconds, killed_at)
    totals: dict[Probe, ProbeTotals] = {}
    for probe in Probe:
        handler = container.get(probe.value)
        if not handler or (probe in failures and failures[probe].is_unknown):
            continue  # A result that is unknown is not counted.
        times = probe_times(handler)
        first = attempt_time(probe, times, 0.0 if probe is Probe.STARTUP else started_at)
        if probe is Probe.STARTUP:
            succeeds_from, fails_from = started_at, inf
            attempts = _count_attempts(times, first, min(end, started_at))
        else:
            is_readiness = probe is Probe.READINESS
            succeeds_from = script.ready_after if is_readiness else 0.0
            fails_from = unready_after if is_readiness else unhealthy_after
            attempts = _count_attempts(times, first, end)
        failed_first = _count_attempts_before(attempts, times, first, succeeds_from)
        successful = max(_count_attempts_before(attempts, times, first, fails_from) - failed_first, 0)
        totals[probe] = ProbeTotals(successful, attempts - successful, 0.0, [successful] * len(BUCKETS))
    return totals


def _count_attempts(times: ProbeTimes, first: float, until: float) -> int:
    """Return the number of attempts from the first one up to a time, inclusive."""
    return 0 if until < first else int((until - first) // times.period) + 1


def _count_attempts_before(attempts: int, times: ProbeTimes, first: float, time: float) -> int:
    """Return how many of the attempts happen before a time."""
    if time == inf:
        return attempts
    return 0 if time <= first else min(attempts, ceil((time - first) / times.period))
