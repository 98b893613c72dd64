"""The effect of probes on a run of a simulated container: when it is started, ready, and killed.

Times are in seconds from the start of a run. Pure.
"""

from bisect import bisect
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from math import ceil, inf
from typing import Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

from .observations import ProbeResult, Results
from .probe_results import SUCCESSES
from .probing import Probe, ProbeTimes, first_attempt, probe_times

_ROUNDING: Final = 1.0
"""A status has the second of a start; without it, a probe might succeed before the initial delay is over."""


class ProbedRun(Struct, frozen=True, kw_only=True):
    """The times at which probes change a run that does not end for another reason; infinite means never."""

    started_at: float
    """The success of the startup probe."""
    readiness_changes: tuple[float, ...] = ()
    """The time at which the container becomes ready, that at which it ceases to be, and so on."""
    killed_at: float
    killed_by: Probe
    first_failures: tuple[tuple[Probe, float], ...] = ()
    """The probes whose first attempts fail, with the times of these."""

    @property
    def changes(self) -> tuple[float, ...]:
        return self.started_at, *self.readiness_changes, self.killed_at

    def is_ready(self, seconds: float) -> bool:
        return bisect(self.readiness_changes, seconds) % 2 == 1


def probed_run(
    container: ReadOnlyTree, results: Mapping[Probe, Results], ready_after: float
) -> ProbedRun | None:
    """Return the times of a container's probes; None if they succeed without a delay."""
    if not results and not _has_delayed_probes(container):
        return None
    times = tuple(
        probe_times(probe_spec) if (probe_spec := container.get(probe.value)) else None for probe in Probe
    )
    return _probed_run(times, tuple(results.get(probe, SUCCESSES) for probe in Probe), ready_after)


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
    times: tuple[ProbeTimes | None, ...], results: tuple[Results, ...], ready_after: float
) -> ProbedRun:
    startup, readiness, liveness = (
        _ProbeRun(probe, times_of_probe, results_of_probe) if times_of_probe else None
        for probe, times_of_probe, results_of_probe in zip(Probe, times, results, strict=True)
    )
    started_at = 0.0
    if startup:
        # After its first decided result a startup probe is not run again.
        at, is_success = next(startup.decisions(0.0), (inf, True))
        if at == inf or not is_success:
            return ProbedRun(
                started_at=inf,
                killed_at=at,
                killed_by=Probe.STARTUP,
                first_failures=startup.first_failures(0.0),
            )
        started_at = at
    readiness_changes: tuple[float, ...] = (max(started_at, ready_after),)
    if readiness:
        readiness_changes = _readiness_changes(readiness.decisions(started_at), ready_after)
    failures = (at for at, is_success in liveness.decisions(started_at) if not is_success) if liveness else ()
    others = [run.first_failures(started_at) for run in (readiness, liveness) if run]
    return ProbedRun(
        started_at=started_at,
        readiness_changes=readiness_changes,
        killed_at=next(iter(failures), inf),
        killed_by=Probe.LIVENESS,
        first_failures=(startup.first_failures(0.0) if startup else ()) or tuple(chain(*others)),
    )


class _ProbeRun(Struct, frozen=True):
    """The attempts of one probe during a run."""

    probe: Probe
    times: ProbeTimes
    results: Results

    def first_failures(self, begin: float) -> tuple[tuple[Probe, float], ...]:
        """Return the probe and its first time if it fails then, or succeeds with a warning.

        A failing liveness probe is reported when it kills.
        """
        first = attempt_time(self.probe, self.times, begin)
        result = result_at(self.results, first)
        is_failure = result.is_success is False
        is_reported = self.probe is not Probe.LIVENESS if is_failure else bool(result.message)
        return ((self.probe, first),) if is_reported else ()

    def decisions(self, begin: float) -> Iterator[tuple[float, bool]]:
        """Yield the times at which so many equal results in a row are reached that they count, with the results."""
        latest: bool | None = None
        run = 0.0
        for attempts in attempts_of(self.probe, self.times, begin, self.results):
            is_success = attempts.result.is_success
            if is_success is None:
                continue
            before = run if is_success == latest else 0
            missing = max((self.times.successes if is_success else self.times.failures) - before, 0)
            if 0 < missing <= attempts.count:
                at = attempts.first + (missing - 1) * self.times.period
                yield at + attempts.result.seconds, is_success
            latest, run = is_success, before + attempts.count


class Attempts(Struct, frozen=True):
    """Successive attempts of a probe that have the same result."""

    first: float
    """The time of the first attempt."""
    count: float
    """The number of attempts; infinite if the result does not change again."""
    result: ProbeResult


def attempts_of(probe: Probe, times: ProbeTimes, begin: float, results: Results) -> Iterator[Attempts]:
    """Yield the attempts of a probe that may run from `begin` on, by result."""
    first = attempt_time(probe, times, begin)
    if first == inf:
        return
    ends = [start for start, _ in results[1:]]
    for (start, result), end in zip(results, [*ends, inf], strict=True):
        attempt = first + max(ceil((start - first) / times.period), 0) * times.period
        count = inf if end == inf else ceil((end - attempt) / times.period)
        if count > 0:
            yield Attempts(attempt, count, result)


def result_at(results: Results, seconds: float) -> ProbeResult:
    """Return the result of an attempt at a time."""
    return results[max(bisect([start for start, _ in results], seconds) - 1, 0)][1]


def failure_message(results: Results, seconds: float) -> str:
    """Return the event message of the latest failure up to a time."""
    messages = [result.message for start, result in results if result.message and start <= seconds]
    return messages[-1] if messages else ""


def _readiness_changes(decisions: Iterator[tuple[float, bool]], ready_after: float) -> tuple[float, ...]:
    """Return the times at which readiness changes; it does not begin before `ready_after`."""
    changes: list[float] = []
    for at, is_success in decisions:
        if is_success != (len(changes) % 2 == 1):
            changes.append(at)
    delayed: list[float] = []
    for begin, end in zip(changes[::2], [*changes[1::2], inf], strict=False):
        if max(begin, ready_after) < end:
            delayed += [max(begin, ready_after), *([end] if end != inf else [])]
    return tuple(delayed)


def attempt_time(probe: Probe, times: ProbeTimes, begin: float) -> float:
    """Return the time of the first attempt of a probe that may run from `begin` on."""
    if begin == inf:
        return inf
    first = first_attempt(probe, times, begin)
    return first + _ROUNDING if begin < first and probe is Probe.READINESS else first
