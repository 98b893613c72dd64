"""The metrics of the scheduler: its attempts, its queue, its cache and its preemptions."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from mockube.component_base.metrics import MetricsRegistry

from . import metric_families

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
_MANY_ATTEMPTS: Final = 15


class SchedulerMonitor:
    def __init__(self, monotonic: Callable[[], float], metrics: MetricsRegistry) -> None:
        self.monotonic = monotonic
        self._metrics = metrics
        self._attempts = metrics.timed_operations(
            metric_families.SCHEDULE_ATTEMPTS, metric_families.SCHEDULING_DURATION
        )
        self.algorithm = metrics.distributions(metric_families.ALGORITHM_DURATION).of()
        self._extension_points = metrics.distributions(metric_families.EXTENSION_POINT_DURATION)
        self._sli = metrics.distributions(metric_families.POD_SCHEDULING_SLI)
        self._pod_attempts = metrics.distributions(metric_families.POD_SCHEDULING_ATTEMPTS).of()
        self._preemptions = metrics.numbers(metric_families.PREEMPTION_ATTEMPTS).of()
        self._victims = metrics.distributions(metric_families.PREEMPTION_VICTIMS).of()

    def record_attempt(self, result: str, began: float, profile: str) -> None:
        self._attempts.observe(self.monotonic() - began, result, profile)

    def record_extension_point(self, name: str, began: float, profile: str, *, success: bool = True) -> None:
        """Record that all plugins of an extension point have run."""
        status = "Success" if success else "Unschedulable"
        self._extension_points.observe(self.monotonic() - began, name, status, profile)

    def record_bound(self, attempts: int, first_attempt_at: float) -> None:
        """Record that a pod was bound after this number of attempts."""
        label = f"{_MANY_ATTEMPTS}+" if attempts >= _MANY_ATTEMPTS else str(attempts)
        self._sli.observe(self.monotonic() - first_attempt_at, label)
        self._pod_attempts.observe(attempts)

    def record_preemption(self, victims: int) -> None:
        """Record that preemption was tried for a pod; without victims it did not help."""
        self._preemptions.value += 1
        if victims:
            self._victims.observe(victims)

    def report_state(
        self,
        pending: Mapping[str, int],
        rejected: Iterable[tuple[str, Iterable[str]]],
        cache: Mapping[str, int],
    ) -> None:
        """Set the pods by queue, the profile of each waiting pod with the plugins that rejected it, and the sizes of the cache."""
        numbers = self._metrics.numbers
        numbers(metric_families.PENDING_PODS).replace(((queue,), count) for queue, count in pending.items())
        numbers(metric_families.SCHEDULER_CACHE_SIZE).replace(
            ((kind,), count) for kind, count in cache.items()
        )
        pods = Counter((plugin, profile) for profile, plugins in rejected for plugin in plugins)
        numbers(metric_families.UNSCHEDULABLE_PODS).replace(pods.items())
