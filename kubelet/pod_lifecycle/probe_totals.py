"""The number of successful and failed probes of a container, and the durations of the successful ones. Pure."""

from collections.abc import Mapping
from math import inf
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree

from .observations import ProbeResult, Results
from .probe_results import SUCCESSES
from .probed_runs import attempts_of, probed_run, result_at
from .probing import Probe, ProbeTimes, probe_times

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
    container: ReadOnlyTree, results: Mapping[Probe, Results], ready_after: float, seconds: float
) -> Mapping[Probe, ProbeTotals]:
    """Return the results of a run's probes after `seconds` of the run; their durations count as zero."""
    run = probed_run(container, results, ready_after)
    started_at, killed_at = (0.0, inf) if run is None else (run.started_at, run.killed_at)
    totals: dict[Probe, ProbeTotals] = {}
    for probe in Probe:
        handler = container.get(probe.value)
        if not handler:
            continue
        begin, end = started_at, min(seconds, killed_at)
        if probe is Probe.STARTUP:
            begin, end = 0.0, min(end, started_at)
        results_of_probe = results.get(probe, SUCCESSES)
        if probe is Probe.READINESS and ready_after:
            results_of_probe = _delayed_results(results_of_probe, ready_after)
        totals[probe] = _totals(probe, probe_times(handler), results_of_probe, begin, end)
    return totals


def _delayed_results(results: Results, ready_after: float) -> Results:
    """Return the results of a readiness probe that fails until the container may be ready."""
    later = [(start, result) for start, result in results if start > ready_after]
    current = [] if ready_after == inf else [(ready_after, result_at(results, ready_after))]
    return ((0.0, ProbeResult(is_success=False)), *current, *later)


def _totals(probe: Probe, times: ProbeTimes, results: Results, begin: float, end: float) -> ProbeTotals:
    """Count the attempts from `begin` up to `end`, inclusive."""
    counts = {True: 0, False: 0, None: 0}
    for attempts in attempts_of(probe, times, begin, results):
        if attempts.first <= end:
            up_to_end = (end - attempts.first) // times.period + 1
            counts[attempts.result.is_success] += int(min(attempts.count, up_to_end))
    return ProbeTotals(counts[True], counts[False], 0.0, [counts[True]] * len(BUCKETS))
