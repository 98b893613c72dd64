"""All metrics of a process, and whether it leads."""

from collections.abc import Callable

from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.process_metrics import count_process
from mockube.component_base.task_supervisor import TASK_RESTARTS

from . import families
from .queues import WorkQueueMetrics
from .recent_reconciliations import RecentByQueue
from .reconciliations import ReconcileMetrics


def report_leadership(
    lease: str, is_leading: Callable[[], bool], metrics: MetricsRegistry
) -> Callable[[], None]:
    """Collect whether this process is the leader; return what ends that."""
    status = metrics.numbers(families.LEADER)
    return metrics.on_collect(lambda: status.set(int(is_leading()), lease))


class Metrics:
    """The metrics of a process, and the registry in which other parts count."""

    def __init__(self, clock: Clock) -> None:
        self.registry = MetricsRegistry()
        self.queues = WorkQueueMetrics(clock, self.registry)
        self.reconciles = ReconcileMetrics(clock, self.registry)
        self.recent = RecentByQueue()
        self.task_restarts = self.registry.numbers(TASK_RESTARTS)
        count_process(self.registry)
