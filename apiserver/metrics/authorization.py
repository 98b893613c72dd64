"""Upstream's metrics of authorization webhooks, their conditions and their configuration file, under upstream's names."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from mockube.component_base.clock import Clock

from .config_reload import ConfigReloadMetrics

_PREFIX: Final = "apiserver_authorization"
_TYPE: Final = "Webhook"
_CONDITION_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)


class AuthorizationMetrics(Collector):
    """The metrics of authorization; `server` is the identity of this server."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._file = ConfigReloadMetrics("authorization", server, clock)
        self.record_config, self.record_reload = self._file.record_config, self._file.record_reload
        labels = ["name", "result"]
        self._evaluations = Counter(
            f"{_PREFIX}_webhook_evaluations", "Round-trips to authorization webhooks.", labels, registry=None
        )
        self._duration = Histogram(
            f"{_PREFIX}_webhook_duration_seconds", "Request latency in seconds.", labels, registry=None
        )
        self._failed_open = Counter(
            f"{_PREFIX}_webhook_evaluations_fail_open",
            "NoOpinion results due to webhook timeout or error.",
            labels,
            registry=None,
        )
        labels = ["type", "name"]
        self._failures = Counter(
            f"{_PREFIX}_match_condition_evaluation_errors",
            "Errors of match conditions, by type and name of the authorizer.",
            labels,
            registry=None,
        )
        self._exclusions = Counter(
            f"{_PREFIX}_match_condition_exclusions",
            "Requests that match conditions excluded, by type and name of the authorizer.",
            labels,
            registry=None,
        )
        self._conditions = Histogram(
            f"{_PREFIX}_match_condition_evaluation_seconds",
            "Time of match conditions in seconds, by type and name of the authorizer.",
            labels,
            buckets=_CONDITION_BUCKETS,
            registry=None,
        )

    def record_evaluation(self, name: str, result: str, seconds: float) -> None:
        self._evaluations.labels(name, result).inc()
        self._duration.labels(name, result).observe(seconds)

    def record_fail_open(self, name: str, result: str) -> None:
        self._failed_open.labels(name, result).inc()

    def record_match(self, name: str, seconds: float, *, failed: bool, excluded: bool) -> None:
        self._conditions.labels(_TYPE, name).observe(seconds)
        if failed:
            self._failures.labels(_TYPE, name).inc()
        if excluded:
            self._exclusions.labels(_TYPE, name).inc()

    def collect(self) -> Iterable[Metric]:
        for metric in (
            self._evaluations,
            self._duration,
            self._failed_open,
            self._failures,
            self._exclusions,
            self._conditions,
            self._file,
        ):
            yield from metric.collect()
