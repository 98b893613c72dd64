"""Metrics of work queues, reconciliations and leader election, under the names of client-go and controller-runtime.

Every key is counted, so counting is a few additions to plain numbers; the families are built when they are collected.
Only controllers that have controller-runtime's metrics upstream have them here: those of OpenKruise's manager.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.metrics.durations import Durations

QUEUE_BUCKETS: Final = tuple(10.0**power for power in range(-8, 2))
"""Seconds; upstream's."""


class OneQueue:
    """The numbers of one queue, as `WorkQueue` reports them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._added: dict[Hashable, float] = {}
        self._processing: dict[Hashable, float] = {}
        self.adds = 0
        self.retries = 0
        self.queued = Durations(QUEUE_BUCKETS)
        self.worked = Durations(QUEUE_BUCKETS)

    def add(self, key: Hashable) -> None:
        self.adds += 1
        self._added.setdefault(key, self._clock.monotonic())

    def get(self, key: Hashable) -> None:
        now = self._clock.monotonic()
        self._processing[key] = now
        self.queued.observe(now - self._added.pop(key, now))

    def done(self, key: Hashable) -> None:
        now = self._clock.monotonic()
        self.worked.observe(now - self._processing.pop(key, now))

    def forget_waiting(self) -> None:
        """The queue is closed; a later one of the same name begins empty."""
        self._added.clear()

    @property
    def is_idle(self) -> bool:
        return not self._added and not self._processing

    @property
    def depth(self) -> int:
        return len(self._added)

    def processing_times(self) -> Sequence[float]:
        """Seconds since the start, for each key in processing."""
        now = self._clock.monotonic()
        return [now - began for began in self._processing.values()]


_QUEUE_GAUGES: Final[Sequence[tuple[str, str, Callable[[OneQueue], float]]]] = (
    ("workqueue_depth", "Keys that wait for a worker.", lambda queue: queue.depth),
    (
        "workqueue_unfinished_work_seconds",
        "Time spent so far on keys that are not done.",
        lambda queue: sum(queue.processing_times()),
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "Time spent on the key that takes longest.",
        lambda queue: max(queue.processing_times(), default=0.0),
    ),
)
_QUEUE_COUNTERS: Final[Sequence[tuple[str, str, Callable[[OneQueue], float]]]] = (
    ("workqueue_adds", "Keys that were added.", lambda queue: queue.adds),
    ("workqueue_retries", "Keys that came again after a failure.", lambda queue: queue.retries),
)
_QUEUE_HISTOGRAMS: Final[Sequence[tuple[str, str, Callable[[OneQueue], Durations]]]] = (
    ("workqueue_queue_duration_seconds", "How long keys waited.", lambda queue: queue.queued),
    ("workqueue_work_duration_seconds", "How long keys were worked on.", lambda queue: queue.worked),
)


class QueueMetrics(Collector):
    """All queues of a process, by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[str, OneQueue] = {}

    def of(self, name: str) -> OneQueue:
        if name not in self._queues:
            self._queues[name] = OneQueue(self._clock)
        return self._queues[name]

    @property
    def is_idle(self) -> bool:
        """No key waits for a worker and none is worked on; some may be due later."""
        return all(queue.is_idle for queue in self._queues.values())

    def collect(self) -> Iterable[Metric]:
        for name, text, read in _QUEUE_GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=["name"])
            for queue, numbers in self._queues.items():
                gauge.add_metric([queue], read(numbers))
            yield gauge
        for name, text, read in _QUEUE_COUNTERS:
            counter = CounterMetricFamily(name, text, labels=["name"])
            for queue, numbers in self._queues.items():
                counter.add_metric([queue], read(numbers))
            yield counter
        for name, text, durations in _QUEUE_HISTOGRAMS:
            histogram = HistogramMetricFamily(name, text, labels=["name"])
            for queue, numbers in self._queues.items():
                durations(numbers).add_to(histogram, [queue])
            yield histogram


# --- reconciliations


RECONCILE_BUCKETS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
)  # fmt: skip
"""Seconds; upstream's."""

SUCCESS: Final = "success"
ERROR: Final = "error"
REQUEUE_AFTER: Final = "requeue_after"
_AT_ONCE: Final = "requeue"
"""No controller here uses it."""


class Runs(Protocol):
    """Receives each reconciliation."""

    def start(self) -> float:
        """Returns the value to pass to `finish`."""

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
        self.results = dict.fromkeys((SUCCESS, ERROR, _AT_ONCE, REQUEUE_AFTER), 0)
        self.took = Durations(RECONCILE_BUCKETS)

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
_RECONCILE_COUNTERS: Final[Numbers] = (
    ("reconcile_errors", "Reconciliations that failed.", lambda controller: controller.results[ERROR]),
    ("terminal_reconcile_errors", "Reconciliations that failed for good: none does.", lambda _: 0),
    ("reconcile_panics", "Reconciliations that failed unforeseen.", lambda controller: controller.panics),
    ("reconcile_timeouts", "Reconciliations that were cut off: none is.", lambda _: 0),
)
_RECONCILE_GAUGES: Final[Numbers] = (
    ("active_workers", "Workers that reconcile now.", lambda controller: controller.active),
    ("max_concurrent_reconciles", "Workers that there are.", lambda controller: controller.workers),
)


class ReconcileMetrics(Collector):
    """All controllers that are observed, by their names upstream."""

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
        for name, text, read in _RECONCILE_COUNTERS:
            yield self._fill(CounterMetricFamily(_metric_name(name), text, labels=["controller"]), read)
        for name, text, read in _RECONCILE_GAUGES:
            yield self._fill(GaugeMetricFamily(_metric_name(name), text, labels=["controller"]), read)
        results = CounterMetricFamily(
            _metric_name("reconcile"),
            "Total number of reconciliations per controller.",
            labels=["controller", "result"],
        )
        took = HistogramMetricFamily(
            _metric_name("reconcile_time_seconds"),
            "Duration of reconciliations per controller, in seconds.",
            labels=["controller"],
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


# --- all metrics of a process


class LeaderMetrics(Collector):
    """Whether this process is the leader."""

    def __init__(self, lease: str, is_leading: Callable[[], bool]) -> None:
        self._lease = lease
        self._is_leading = is_leading

    def collect(self) -> Iterable[Metric]:
        gauge = GaugeMetricFamily(
            "leader_election_master_status",
            "1 for the leader, 0 for the others.",
            labels=["name"],
        )
        gauge.add_metric([self._lease], float(self._is_leading()))
        yield gauge


class Metrics:
    """The metrics of a process, and their registry; other collectors are registered there."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self.queues = QueueMetrics(clock)
        self.reconciles = ReconcileMetrics(clock)
        self.task_restarts = Counter(
            "mockube_task_restarts",
            "Tasks that failed unexpectedly and were restarted.",
            ["task"],
            registry=self.registry,
        )
        for collector in (self.queues, self.reconciles):
            self.registry.register(collector)
