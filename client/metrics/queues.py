"""Work queues. Every key is counted, so counting is a few additions to plain numbers."""

from collections.abc import Hashable, Mapping, Sequence

from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry

from . import families


class QueueStats:
    """The statistics of one work queue, which `WorkQueue` updates."""

    def __init__(self, name: str, clock: Clock, metrics: MetricsRegistry) -> None:
        self._clock = clock
        self._added_at: dict[Hashable, float] = {}
        self._started_at: dict[Hashable, float] = {}
        self.adds = metrics.numbers(families.QUEUE_ADDS).of(name)
        self.retries = metrics.numbers(families.QUEUE_RETRIES).of(name)
        self.queue_durations = metrics.distributions(families.QUEUE_DURATION).of(name)
        self.work_durations = metrics.distributions(families.WORK_DURATION).of(name)

    def add(self, key: Hashable) -> None:
        self.adds.value += 1
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


class WorkQueueMetrics:
    """The metrics of all work queues of a process, by name."""

    def __init__(self, clock: Clock, metrics: MetricsRegistry) -> None:
        self._clock = clock
        self._metrics = metrics
        self._queues: dict[str, QueueStats] = {}
        metrics.on_collect(self._update)

    def of(self, name: str) -> QueueStats:
        if name not in self._queues:
            self._queues[name] = QueueStats(name, self._clock, self._metrics)
        return self._queues[name]

    def by_name(self) -> Mapping[str, QueueStats]:
        return self._queues

    @property
    def is_idle(self) -> bool:
        """Whether no key waits for a worker or is being processed. Delayed keys do not count."""
        return all(queue.is_idle for queue in self._queues.values())

    def _update(self) -> None:
        depth, unfinished, longest_running = (
            self._metrics.numbers(family)
            for family in (families.QUEUE_DEPTH, families.QUEUE_UNFINISHED, families.QUEUE_LONGEST)
        )
        for name, queue in self._queues.items():
            times = queue.processing_times()
            depth.set(queue.depth, name)
            unfinished.set(sum(times), name)
            longest_running.set(max(times, default=0.0), name)
