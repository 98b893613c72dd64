"""Results and durations of admission and conversion webhooks: upstream's metrics under upstream's names."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)
_PREFIX: Final = "apiserver_admission_webhook"
_DEFINITION_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
_CONVERSION_BUCKETS: Final = (
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    20.0,
    30.0,
    45.0,
    60.0,
)
NO_ERROR, CALLING, INTERNAL = "no_error", "calling_webhook_error", "apiserver_internal_error"


class WebhookMetrics(Collector):
    """The calls of admission webhooks, by the names in their configurations."""

    def __init__(self) -> None:
        self._duration = Histogram(
            f"{_PREFIX}_admission_duration_seconds",
            "Admission webhook latency histogram in seconds, by name, operation and type.",
            ["name", "type", "operation", "rejected"],
            buckets=_BUCKETS,
            registry=None,
        )
        self._requests = Counter(
            f"{_PREFIX}_request",
            "Admission webhook requests, by name, operation, type and code.",
            ["name", "type", "operation", "code", "rejected"],
            registry=None,
        )
        self._rejections = Counter(
            f"{_PREFIX}_rejection_count",
            "Admission webhook rejections, by name, type, operation, kind of error and code.",
            ["name", "type", "operation", "error_type", "rejection_code"],
            registry=None,
        )
        self._failed_open = Counter(
            f"{_PREFIX}_fail_open_count",
            "Failures of admission webhooks that did not stop a request, by name and type.",
            ["name", "type"],
            registry=None,
        )

    def observe(self, name: str, operation: str, code: int, seconds: float, **outcome: str) -> None:
        """Count one call; `outcome` has its `type`, and an `error_type` if it was rejected."""
        kind, error = outcome["type"], outcome.get("error_type", "")
        rejected = "true" if error else "false"
        self._duration.labels(name, kind, operation, rejected).observe(seconds)
        self._requests.labels(name, kind, operation, str(code), rejected).inc()
        if error:
            self._rejections.labels(name, kind, operation, error, str(min(code, 600))).inc()

    def record_fail_open(self, name: str, kind: str) -> None:
        self._failed_open.labels(name, kind).inc()

    def collect(self) -> Iterable[Metric]:
        for metric in (self._duration, self._requests, self._rejections, self._failed_open):
            yield from metric.collect()


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
            buckets=_CONVERSION_BUCKETS,
            registry=None,
        )
        self._of_definitions = Histogram(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "Latency of conversion webhooks in seconds, by definition and versions.",
            ["crd_name", "from_version", "to_version", "succeeded"],
            buckets=_DEFINITION_BUCKETS,
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
