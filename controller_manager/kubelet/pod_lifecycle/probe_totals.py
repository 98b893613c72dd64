"""How often the probes of a container have succeeded and failed, and how long those took that succeeded. Pure."""

from collections.abc import Mapping
from math import ceil, inf
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.pod_lifecycle.probing import Probe, ProbeTimes, probe_times
from mockube.controller_manager.kubelet.pod_lifecycle.script import Script
from mockube.controller_manager.kubelet.pod_lifecycle.scripted_probes import probed_run

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds; Prometheus' defaults."""


class ProbeTotals(Struct):
    successful: int = 0
    failed: int = 0
    seconds: float = 0.0
    """The sum of the successful ones."""
    within: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    """The count of each bucket."""

    def add(self, *, success: bool, seconds: float) -> None:
        if not success:
            self.failed += 1
            return
        self.successful += 1
        self.seconds += seconds
        for index, bound in enumerate(BUCKETS):
            self.within[index] += seconds <= bound


def simulated_totals(container: ReadOnlyTree, script: Script, seconds: float) -> Mapping[Probe, ProbeTotals]:
    """Of the probes of a run that has lasted so long; a simulated probe takes no time."""
    run = probed_run(container, script)
    started, killed = (0.0, inf) if run is None else (run.started, run.killed)
    end = min(seconds, killed)
    totals: dict[Probe, ProbeTotals] = {}
    for probe in Probe:
        handler = container.get(probe.value)
        if not handler:
            continue
        times = probe_times(handler)
        first = max(started if probe is not Probe.STARTUP else 0.0, float(times.initial_delay))
        if probe is Probe.STARTUP:
            passes, fails = started, inf
            tries = _tries(times, first, min(end, started))
        else:
            is_readiness = probe is Probe.READINESS
            passes = script.ready_after if is_readiness else 0.0
            fails = script.fail_readiness_after if is_readiness else script.fail_liveness_after
            tries = _tries(times, first, end)
        failed_first = _at_most_before(tries, times, first, passes)
        successful = max(_at_most_before(tries, times, first, fails) - failed_first, 0)
        totals[probe] = ProbeTotals(successful, tries - successful, 0.0, [successful] * len(BUCKETS))
    return totals


def _tries(times: ProbeTimes, first: float, until: float) -> int:
    """Return how many of endlessly repeated tries happen up to a time, inclusive."""
    return 0 if until < first else int((until - first) // times.period) + 1


def _at_most_before(tries: int, times: ProbeTimes, first: float, time: float) -> int:
    """Return how many of so many tries happen before a time."""
    if time == inf:
        return tries
    return 0 if time <= first else min(tries, ceil((time - first) / times.period))
