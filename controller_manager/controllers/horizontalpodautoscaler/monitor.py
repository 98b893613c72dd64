"""The metrics of the HorizontalPodAutoscaler controller, with kube-controller-manager's names."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.metrics.durations import LabelledDurations

BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
"""The buckets of durations in seconds; they are upstream's."""
UP: Final = "scale_up"
DOWN: Final = "scale_down"
NONE: Final = "none"
SPEC: Final = "spec"
INTERNAL: Final = "internal"

_PREFIX: Final = "horizontal_pod_autoscaler_controller_"
_BY_RESULT: Final = ("action", "error")


def action(old: int, new: int) -> str:
    return UP if new > old else DOWN if new < old else NONE


def _observations(total: str, duration: str, labels: tuple[str, ...]) -> LabelledDurations:
    return LabelledDurations(f"{_PREFIX}{total}", f"{_PREFIX}{duration}", labels, BUCKETS)


class Monitor(Collector):
    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self.desired: dict[Key, int] = {}
        self.reconciliations = _observations("reconciliations", "reconciliation_duration_seconds", _BY_RESULT)
        self.computations = _observations(
            "metric_computation", "metric_computation_duration_seconds", (*_BY_RESULT, "metric_type")
        )

    def collect(self) -> Iterable[Metric]:
        yield from self.reconciliations.collect()
        yield from self.computations.collect()
        yield GaugeMetricFamily(
            f"{_PREFIX}num_horizontal_pod_autoscalers", "Number of autoscalers.", value=self._count()
        )
        desired = GaugeMetricFamily(
            f"{_PREFIX}desired_replicas",
            "Desired number of replicas of each autoscaler.",
            labels=("namespace", "hpa_name"),
        )
        for key, replicas in self.desired.items():
            desired.add_metric(key, replicas)
        yield desired
