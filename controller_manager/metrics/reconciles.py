"""Metrics of reconciliations under controller-runtime's names: only of controllers that have them upstream.

OpenKruise's manager is made with controller-runtime, kube-controller-manager is not.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.metrics.durations import Durations

BUCKETS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
)  # fmt: skip
"""Seconds; upstream's."""

SUCCESS: Final = "success"
ERROR: Final = "error"
AGAIN: Final = "requeue_after"
_AT_ONCE: Final = "requeue"
"""No controller here uses it."""


class Runs(Protocol):
    """Receives each reconciliation."""

    def start(self) -> float:
        """Returns the value to pass to the end."""

    def finish(self, began: float, result: str) -> None: ...

    def record_panic(self) -> None:
        """It failed with an unexpected exception; its end is reported as well."""


class NoRuns:
    def start(self) -> float:
        return 0.0

    def finish(self, began: float, result: str) -> None: ...

    def record_panic(self) -> None: ...


UNOBSERVED: Final = NoRuns()


class OneController:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.workers = 0
        self.active = 0
        self.panics = 0
        self.results = dict.fromkeys((SUCCESS, ERROR, _AT_ONCE, AGAIN), 0)
        self.took = Durations(BUCKETS)

    def start(self) -> float:
        self.active += 1
        return self._clock.monotonic()

    def finish(self, began: float, result: str) -> None:
        self.active -= 1
        self.results[result] += 1
        self.took.observe(self._clock.monotonic() - began)

    def record_panic(self) -> None:
        self.panics += 1


Numbers = Sequence[tuple[str, str, Callable[[OneController], float]]]
_COUNTERS: Final[Numbers] = (
    ("reconcile_errors", "Reconciliations that failed.", lambda controller: controller.results[ERROR]),
    ("terminal_reconcile_errors", "Reconciliations that failed for good: none does.", lambda _: 0),
    ("reconcile_panics", "Reconciliations that failed unforeseen.", lambda controller: controller.panics),
    ("reconcile_timeouts", "Reconciliations that were cut off: none is.", lambda _: 0),
)
_GAUGES: Final[Numbers] = (
    ("active_workers", "Workers that reconcile now.", lambda controller: controller.active),
    ("max_concurrent_reconciles", "Workers that there are.", lambda controller: controller.workers),
)


class ReconcileMetrics(Collector):
    """Of all controllers that are observed, by their names upstream."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._controllers: dict[str, OneController] = {}

    def of(self, name: str, workers: int) -> Runs:
        """A controller without a name is not counted."""
        if not name:
            return UNOBSERVED
        controller = self._controllers.setdefault(name, OneController(self._clock))
        controller.workers, controller.active = workers, 0
        return controller

    def collect(self) -> Iterable[Metric]:
        for name, text, read in _COUNTERS:
            yield self._fill(CounterMetricFamily(_metric_name(name), text, labels=["controller"]), read)
        for name, text, read in _GAUGES:
            yield self._fill(GaugeMetricFamily(_metric_name(name), text, labels=["controller"]), read)
        results = CounterMetricFamily(
            _metric_name("reconcile"), "Reconciliations.", labels=["controller", "result"]
        )
        took = HistogramMetricFamily(
            _metric_name("reconcile_time_seconds"), "How long they took.", labels=["controller"]
        )
        for name, controller in self._controllers.items():
            controller.took.add_to(took, [name])
            for result, count in controller.results.items():
                results.add_metric([name, result], count)
        yield results
        yield took

    def _fill(
        self, family: CounterMetricFamily | GaugeMetricFamily, read: Callable[[OneController], float]
    ) -> Metric:
        for name, controller in self._controllers.items():
            family.add_metric([name], read(controller))
        return family


def _metric_name(name: str) -> str:
    return f"controller_runtime_{name}"
