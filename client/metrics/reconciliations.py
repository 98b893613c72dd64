"""Reconciliations, as controller-runtime counts them.

Only controllers that have these metrics upstream have them here: those of packs, because kube-controller-manager has none.
"""

from typing import Final, Protocol

from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry

from . import families

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

    def cancel(self) -> None:
        """Note that a reconciliation was cancelled, and has no result: `finish` is not called."""

    def record_panic(self) -> None:
        """Count a reconciliation that failed with an unexpected exception; `finish` is called as well."""


class NoopObserver:
    """The observer of a controller without controller-runtime's metrics."""

    def start(self) -> float:
        return 0.0

    def finish(self, started_at: float, result: str) -> None: ...

    def cancel(self) -> None: ...

    def record_panic(self) -> None: ...


NOOP_OBSERVER: Final = NoopObserver()


class ControllerStats:
    """The statistics of one controller: its `ReconcileObserver`."""

    def __init__(self, name: str, clock: Clock, metrics: MetricsRegistry) -> None:
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

    def cancel(self) -> None:
        self.active.value -= 1

    def record_panic(self) -> None:
        self._panics.value += 1


class ReconcileMetrics:
    """The metrics of controllers that have controller-runtime's metrics upstream, by their names there."""

    def __init__(self, clock: Clock, metrics: MetricsRegistry) -> None:
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
