"""Results and durations of conversion webhooks: upstream's metrics under upstream's names."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

_OF_DEFINITIONS: Final = tuple(0.001 * 2**power for power in range(15))
_OF_ALL: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0)


class ConversionMetrics(Collector):
    def __init__(self) -> None:
        self._requests = Counter(
            "apiserver_conversion_webhook_request",
            "Requests to conversion webhooks, by result and reason of failure.",
            ["result", "failure_type"],
            registry=None,
        )
        self._duration = Histogram(
            "apiserver_conversion_webhook_duration_seconds",
            "Latency of conversion webhooks in seconds.",
            ["result", "failure_type"],
            buckets=_OF_ALL,
            registry=None,
        )
        self._of_definitions = Histogram(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "Latency of conversion webhooks in seconds, by definition and versions.",
            ["crd_name", "from_version", "to_version", "succeeded"],
            buckets=_OF_DEFINITIONS,
            registry=None,
        )

    def observe(
        self, definition: str, from_version: str, to_version: str, failure: str, seconds: float
    ) -> None:
        """Count one review; `failure` is the reason of a failure, "" for none."""
        result = ("failure", failure) if failure else ("success", "")
        self._requests.labels(*result).inc()
        self._duration.labels(*result).observe(seconds)
        succeeded = "false" if failure else "true"
        self._of_definitions.labels(definition, from_version, to_version, succeeded).observe(seconds)

    def collect(self) -> Iterable[Metric]:
        for metric in (self._requests, self._duration, self._of_definitions):
            yield from metric.collect()
