"""Work queues, reconciliations and leader election.

Every key is counted, so counting is a few additions to plain numbers. Only controllers that have controller-runtime's
metrics upstream have them here: those of packs, because kube-controller-manager has none.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Protocol

from mockube.component_base.clock import Clock
from mockube.component_base.metrics import Registry
from mockube.component_base.process_metrics import count_process
from mockube.component_base.task_supervisor import TASK_RESTARTS

from . import families


class QueueStats:
    """The statistics of one work queue, which `WorkQueue` updates."""

    def __init__(self, name: str, clock: Clock, metrics: Registry) -> None:
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

    def __init__(self, clock: Clock, metrics: Registry) -> None:
        self._clock = clock
        self._metrics = metrics
        self._queues: dict[str, QueueStats] = {}
        metrics.on_collect(self._update)

    def of(self, name: str) -> QueueStats:
        if name not in self._queues:
            self._queues[name] = QueueStats(name, self._clock, self._metrics)
        return self._queues[name]

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


# --- reconciliations


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

    def __init__(self, name: str, clock: Clock, metrics: Registry) -> None:
        self._clock = clock
        self.workers = metrics.numbers(families.MAX_RECONCILES).of(name)
        self.active = metrics.numbers(families.ACTIVE_WORKERS).of(name)
        self._panics = metrics.numbers(families.RECONCILE_PANICS).of(name)
        self._errors = metrics.numbers(families.RECONCILE_ERRORS).of(name)
        results = metrics.numbers(families.RECONCILES)
        self._results = {
            result: results.of(name, result) for result in (SUCCESS, ERROR, REQUEUE, REQUEUE_AFTER)
        }
        self._durations = metrics.distributions(families.RECONCILE_TIME).of(name)
        for never in (families.TERMINAL_RECONCILE_ERRORS, families.RECONCILE_TIMEOUTS):
            metrics.numbers(never).of(name)

    def start(self) -> float:
        self.active.value += 1
        return self._clock.monotonic()

    def finish(self, started_at: float, result: str) -> None:
        self.active.value -= 1
        self._results[result].value += 1
        if result == ERROR:
            self._errors.value += 1
        self._durations.observe(self._clock.monotonic() - started_at)

    def record_panic(self) -> None:
        self._panics.value += 1


class ReconcileMetrics:
    """The metrics of controllers that have controller-runtime's metrics upstream, by their names there."""

    def __init__(self, clock: Clock, metrics: Registry) -> None:
        self._clock = clock
        self._metrics = metrics
        self._controllers: dict[str, ControllerStats] = {}

    def of(self, name: str, workers: int) -> ReconcileObserver:
        """Return the observer of a controller; one that counts nothing if the name is empty."""
        if not name:
            return NOOP_OBSERVER
        controller = self._controllers.get(name)
        if controller is None:
            controller = self._controllers[name] = ControllerStats(name, self._clock, self._metrics)
        controller.workers.value, controller.active.value = workers, 0
        return controller


# --- all metrics of a process


def report_leadership(lease: str, is_leading: Callable[[], bool], metrics: Registry) -> None:
    """Collect whether this process is the leader."""
    status = metrics.numbers(families.LEADER)
    metrics.on_collect(lambda: status.set(int(is_leading()), lease))


class Metrics:
    """The metrics of a process, and the registry in which other parts count."""

    def __init__(self, clock: Clock) -> None:
        self.registry = Registry()
        self.queues = WorkQueueMetrics(clock, self.registry)
        self.reconciles = ReconcileMetrics(clock, self.registry)
        self.task_restarts = self.registry.numbers(TASK_RESTARTS)
        count_process(self.registry)
