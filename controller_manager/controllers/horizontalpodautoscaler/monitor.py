"""What is counted of HorizontalPodAutoscalers, under the names that kube-controller-manager gave."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.metrics.durations import Durations

BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
"""Seconds; upstream's."""
UP: Final = "scale_up"
DOWN: Final = "scale_down"
NONE: Final = "none"
SPEC: Final = "spec"
INTERNAL: Final = "internal"

_PREFIX: Final = "horizontal_pod_autoscaler_controller_"
_BY_RESULT: Final = ("action", "error")


def action(old: int, new: int) -> str:
    return UP if new > old else DOWN if new < old else NONE


class Observations:
    """How often something came out in which way, and how long it took."""

    def __init__(self, total: str, duration: str, labels: tuple[str, ...]) -> None:
        self._total = total
        self._duration = duration
        self._labels = labels
        self._durations: dict[tuple[str, ...], Durations] = {}
        self._counts: dict[tuple[str, ...], int] = {}

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        self._durations.setdefault(labels, Durations(BUCKETS)).observe(seconds)
        self._counts[labels] = self._counts.get(labels, 0) + 1

    def collect(self) -> Iterable[Metric]:
        counts = CounterMetricFamily(f"{_PREFIX}{self._total}", "How often.", labels=self._labels)
        took = HistogramMetricFamily(f"{_PREFIX}{self._duration}", "How long it took.", labels=self._labels)
        for labels, count in self._counts.items():
            counts.add_metric(labels, count)
            self._durations[labels].add_to(took, labels)
        yield counts
        yield took


class Monitor(Collector):
    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self.desired: dict[Key, int] = {}
        self.reconciliations = Observations("reconciliations", "reconciliation_duration_seconds", _BY_RESULT)
        self.computations = Observations(
            "metric_computation", "metric_computation_duration_seconds", (*_BY_RESULT, "metric_type")
        )

    def collect(self) -> Iterable[Metric]:
        yield from self.reconciliations.collect()
        yield from self.computations.collect()
        yield GaugeMetricFamily(
            f"{_PREFIX}num_horizontal_pod_autoscalers", "Autoscalers that there are.", value=self._count()
        )
        desired = GaugeMetricFamily(
            f"{_PREFIX}desired_replicas", "Replicas that are wanted.", labels=("namespace", "hpa_name")
        )
        for key, replicas in self.desired.items():
            desired.add_metric(key, replicas)
        yield desired
