"""Metrics of work queues and leader election, under client-go's names.

Every key is counted, so counting is a few additions to plain numbers; the families are built when they are collected.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.metrics.durations import Durations
from mockube.controller_manager.metrics.reconciles import ReconcileMetrics

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


_GAUGES: Final[Sequence[tuple[str, str, Callable[[OneQueue], float]]]] = (
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
_COUNTERS: Final[Sequence[tuple[str, str, Callable[[OneQueue], float]]]] = (
    ("workqueue_adds", "Keys that were added.", lambda queue: queue.adds),
    ("workqueue_retries", "Keys that came again after a failure.", lambda queue: queue.retries),
)
_HISTOGRAMS: Final[Sequence[tuple[str, str, Callable[[OneQueue], Durations]]]] = (
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
        for name, text, read in _GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=["name"])
            for queue, numbers in self._queues.items():
                gauge.add_metric([queue], read(numbers))
            yield gauge
        for name, text, read in _COUNTERS:
            counter = CounterMetricFamily(name, text, labels=["name"])
            for queue, numbers in self._queues.items():
                counter.add_metric([queue], read(numbers))
            yield counter
        for name, text, durations in _HISTOGRAMS:
            histogram = HistogramMetricFamily(name, text, labels=["name"])
            for queue, numbers in self._queues.items():
                durations(numbers).add_to(histogram, [queue])
            yield histogram


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
