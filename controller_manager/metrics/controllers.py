"""Metrics of work queues, reconciliations and leader election, with the names of client-go and controller-runtime.

Every key is counted, so counting is a few additions to plain numbers; the families are built when they are collected.
Only controllers that have controller-runtime's metrics upstream have them here: those of packs, because kube-controller-manager has none.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.component_base.clock import Clock

from .durations import Durations

QUEUE_BUCKETS: Final = tuple(10.0**power for power in range(-8, 2))
"""Upper bounds in seconds; upstream's."""


class QueueStats:
    """The statistics of one work queue, which `WorkQueue` updates."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._added_at: dict[Hashable, float] = {}
        self._started_at: dict[Hashable, float] = {}
        self.adds = 0
        self.retries = 0
        self.queue_durations = Durations(QUEUE_BUCKETS)
        self.work_durations = Durations(QUEUE_BUCKETS)

    def add(self, key: Hashable) -> None:
        self.adds += 1
        self._added_at.setdefault(key, self._clock.monotonic())

    def get(self, key: Hashable) -> None:
        now = self._clock.monotonic()
        self._started_at[key] = now
        self.queue_durations.observe(now - self._added_at.pop(key, now))

    def done(self, key: Hashable) -> None:
        now = self._clock.monotonic()
        self.work_durations.observe(now - self._started_at.pop(key, now))

    def clear_waiting(self) -> None:
        """Forget the keys that wait in a closed queue: a later queue of the same name starts empty."""
        self._added_at.clear()

    @property
    def is_idle(self) -> bool:
        return not self._added_at and not self._started_at

    @property
    def depth(self) -> int:
        return len(self._added_at)

    def processing_times(self) -> Sequence[float]:
        """Return for each key in processing the seconds since a worker took it."""
        now = self._clock.monotonic()
        return [now - started_at for started_at in self._started_at.values()]


_QUEUE_GAUGES: Final[Sequence[tuple[str, str, Callable[[QueueStats], float]]]] = (
    ("workqueue_depth", "Current depth of workqueue.", lambda queue: queue.depth),
    (
        "workqueue_unfinished_work_seconds",
        "How many seconds of work is in progress that work_duration has not observed yet.",
        lambda queue: sum(queue.processing_times()),
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "How many seconds the longest running worker of the workqueue has been running.",
        lambda queue: max(queue.processing_times(), default=0.0),
    ),
)
_QUEUE_COUNTERS: Final[Sequence[tuple[str, str, Callable[[QueueStats], float]]]] = (
    ("workqueue_adds", "Total number of adds handled by workqueue.", lambda queue: queue.adds),
    ("workqueue_retries", "Total number of retries handled by workqueue.", lambda queue: queue.retries),
)
_QUEUE_HISTOGRAMS: Final[Sequence[tuple[str, str, Callable[[QueueStats], Durations]]]] = (
    (
        "workqueue_queue_duration_seconds",
        "How long in seconds an item stays in workqueue before being requested.",
        lambda queue: queue.queue_durations,
    ),
    (
        "workqueue_work_duration_seconds",
        "How long in seconds processing an item from workqueue takes.",
        lambda queue: queue.work_durations,
    ),
)


class WorkQueueMetrics(Collector):
    """The metrics of all work queues of a process, by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[str, QueueStats] = {}

    def of(self, name: str) -> QueueStats:
        if name not in self._queues:
            self._queues[name] = QueueStats(self._clock)
        return self._queues[name]

    @property
    def is_idle(self) -> bool:
        """Whether no key waits for a worker or is being processed. Delayed keys do not count."""
        return all(queue.is_idle for queue in self._queues.values())

    def collect(self) -> Iterable[Metric]:
        for name, text, read in _QUEUE_GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=["name"])
            for queue, stats in self._queues.items():
                gauge.add_metric([queue], read(stats))
            yield gauge
        for name, text, read in _QUEUE_COUNTERS:
            counter = CounterMetricFamily(name, text, labels=["name"])
            for queue, stats in self._queues.items():
                counter.add_metric([queue], read(stats))
            yield counter
        for name, text, durations in _QUEUE_HISTOGRAMS:
            histogram = HistogramMetricFamily(name, text, labels=["name"])
            for queue, stats in self._queues.items():
                durations(stats).add_to(histogram, [queue])
            yield histogram


# --- reconciliations


RECONCILE_BUCKETS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
)  # fmt: skip
"""Upper bounds in seconds; upstream's."""

SUCCESS: Final = "success"
ERROR: Final = "error"
REQUEUE_AFTER: Final = "requeue_after"
REQUEUE: Final = "requeue"
"""A result that no controller here returns: a series of controller-runtime's metric."""


class ReconcileObserver(Protocol):
    """Is notified of the start and the end of each reconciliation of one controller."""

    def start(self) -> float:
        """Note the start of a reconciliation; return the value to pass to `finish`."""

    def finish(self, started_at: float, result: str) -> None: ...

    def record_panic(self) -> None:
        """Count a reconciliation that failed with an unexpected exception; `finish` is called as well."""


class NoopObserver:
    """The observer of a controller without controller-runtime's metrics."""

    def start(self) -> float:
        return 0.0

    def finish(self, started_at: float, result: str) -> None: ...

    def record_panic(self) -> None: ...


NOOP_OBSERVER: Final = NoopObserver()


class ControllerStats:
    """The statistics of one controller: its `ReconcileObserver`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.workers = 0
        self.active = 0
        self.panics = 0
        self.results = dict.fromkeys((SUCCESS, ERROR, REQUEUE, REQUEUE_AFTER), 0)
        self.durations = Durations(RECONCILE_BUCKETS)

    def start(self) -> float:
        self.active += 1
        return self._clock.monotonic()

    def finish(self, started_at: float, result: str) -> None:
        self.active -= 1
        self.results[result] += 1
        self.durations.observe(self._clock.monotonic() - started_at)

    def record_panic(self) -> None:
        self.panics += 1


_ControllerSeries = Sequence[tuple[str, str, Callable[[ControllerStats], float]]]
"""The name, help text and value of each metric."""

_RECONCILE_COUNTERS: Final[_ControllerSeries] = (
    (
        "reconcile_errors",
        "Total number of reconciliation errors per controller.",
        lambda controller: controller.results[ERROR],
    ),
    (
        "terminal_reconcile_errors",
        "Total number of terminal reconciliation errors per controller; always 0 in mockube.",
        lambda _: 0,
    ),
    (
        "reconcile_panics",
        "Total number of reconciliation panics per controller.",
        lambda controller: controller.panics,
    ),
    (
        "reconcile_timeouts",
        "Total number of reconciliation timeouts per controller; always 0 in mockube.",
        lambda _: 0,
    ),
)
_RECONCILE_GAUGES: Final[_ControllerSeries] = (
    (
        "active_workers",
        "Number of currently used workers per controller.",
        lambda controller: controller.active,
    ),
    (
        "max_concurrent_reconciles",
        "Maximum number of concurrent reconciles per controller.",
        lambda controller: controller.workers,
    ),
)


class ReconcileMetrics(Collector):
    """The metrics of controllers that have controller-runtime's metrics upstream, by their names there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._controllers: dict[str, ControllerStats] = {}

    def of(self, name: str, workers: int) -> ReconcileObserver:
        """Return the observer of a controller; one that counts nothing if the name is empty."""
        if not name:
            return NOOP_OBSERVER
        controller = self._controllers.setdefault(name, ControllerStats(self._clock))
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
        durations = HistogramMetricFamily(
            _metric_name("reconcile_time_seconds"),
            "Length of time per reconciliation per controller, in seconds.",
            labels=["controller"],
        )
        for name, controller in self._controllers.items():
            controller.durations.add_to(durations, [name])
            for result, count in controller.results.items():
                results.add_metric([name, result], count)
        yield results
        yield durations

    def _fill(
        self, family: CounterMetricFamily | GaugeMetricFamily, read: Callable[[ControllerStats], float]
    ) -> Metric:
        for name, controller in self._controllers.items():
            family.add_metric([name], read(controller))
        return family


def _metric_name(name: str) -> str:
    return f"controller_runtime_{name}"


# --- all metrics of a process


class LeaderMetrics(Collector):
    """The metric that reports whether this process is the leader."""

    def __init__(self, lease: str, is_leading: Callable[[], bool]) -> None:
        self._lease = lease
        self._is_leading = is_leading

    def collect(self) -> Iterable[Metric]:
        gauge = GaugeMetricFamily(
            "leader_election_master_status",
            "Whether the reporting system is the leader of the lease in 'name': 1 for the leader, 0 for a backup.",
            labels=["name"],
        )
        gauge.add_metric([self._lease], float(self._is_leading()))
        yield gauge


class Metrics:
    """The metrics of a process, and the registry to which other parts add their collectors."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self.queues = WorkQueueMetrics(clock)
        self.reconciles = ReconcileMetrics(clock)
        self.task_restarts = Counter(
            "mockube_task_restarts",
            "Total number of tasks that failed unexpectedly and were restarted.",
            ["task"],
            registry=self.registry,
        )
        for collector in (self.queues, self.reconciles):
            self.registry.register(collector)
