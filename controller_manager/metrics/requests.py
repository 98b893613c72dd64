"""Metrics of the client, under upstream's names.

Every request is counted, so counting is a few additions to plain numbers; families are built when they are collected.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.controller_manager.metrics.durations import Durations

BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds; upstream's."""
NO_CODE: Final = "<error>"
"""The code of what was not answered."""

Labels: TypeAlias = tuple[str, ...]


class ClientMetrics(Collector):
    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._retries: Counter[Labels] = Counter()
        self._durations: dict[Labels, Durations] = defaultdict(_durations)
        self._waits: dict[Labels, Durations] = defaultdict(_durations)

    def record_result(self, *, code: int | None, host: str, method: str, seconds: float) -> None:
        """An attempt is over; without a code when there was no answer."""
        self._requests[NO_CODE if code is None else str(code), host, method] += 1
        self._durations[host, method].observe(seconds)

    def record_retry(self, *, code: int | None, host: str, method: str) -> None:
        self._retries[NO_CODE if code is None else str(code), host, method] += 1

    def held_back(self, *, host: str, method: str, seconds: float) -> None:
        self._waits[host, method].observe(seconds)

    def collect(self) -> Iterable[Metric]:
        yield _counts("rest_client_requests", "Requests by result.", "method", self._requests)
        yield _counts("rest_client_request_retries", "Retried requests.", "verb", self._retries)
        yield _histogram("rest_client_request_duration_seconds", "How long requests took.", self._durations)
        yield _histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long requests waited for the client's rate limit.",
            self._waits,
        )


def _counts(name: str, documentation: str, method: str, counts: Counter[Labels]) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=("code", "host", method))
    for under, count in counts.items():
        family.add_metric(under, count)
    return family


def _histogram(name: str, documentation: str, durations: Mapping[Labels, Durations]) -> Metric:
    family = HistogramMetricFamily(name, documentation, labels=("host", "verb"))
    for under, numbers in durations.items():
        numbers.add_to(family, under)
    return family


def _durations() -> Durations:
    return Durations(BUCKETS)
