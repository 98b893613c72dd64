"""Metrics of requests, reflectors and informers, with client-go's names where it has them.

Every request and every event is counted, so counting is a few additions to plain numbers; families are built when they
are collected.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from .durations import Durations

REQUEST_BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Upper bounds in seconds; upstream's."""
NO_CODE: Final = "<error>"
"""The code of a request without a response."""

Labels: TypeAlias = tuple[str, ...]


class ClientMetrics(Collector):
    """The metrics of requests to the server; client-go's `rest_client_*`."""

    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._retries: Counter[Labels] = Counter()
        self._durations: dict[Labels, Durations] = defaultdict(_durations)
        self._waits: dict[Labels, Durations] = defaultdict(_durations)

    def record_result(self, *, code: int | None, host: str, method: str, seconds: float) -> None:
        """Count an attempt; the code is None if there was no response."""
        self._requests[NO_CODE if code is None else str(code), host, method] += 1
        self._durations[host, method].observe(seconds)

    def record_retry(self, *, code: int | None, host: str, method: str) -> None:
        self._retries[NO_CODE if code is None else str(code), host, method] += 1

    def record_wait(self, *, host: str, method: str, seconds: float) -> None:
        self._waits[host, method].observe(seconds)

    def collect(self) -> Iterable[Metric]:
        yield _counts(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            "method",
            self._requests,
        )
        yield _counts(
            "rest_client_request_retries",
            "Number of request retries, partitioned by status code, verb, and host.",
            "verb",
            self._retries,
        )
        yield _histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            self._durations,
        )
        yield _histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            self._waits,
        )


def _counts(name: str, documentation: str, method: str, counts: Counter[Labels]) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=("code", "host", method))
    for label_values, count in counts.items():
        family.add_metric(label_values, count)
    return family


def _histogram(name: str, documentation: str, durations: Mapping[Labels, Durations]) -> Metric:
    family = HistogramMetricFamily(name, documentation, labels=("host", "verb"))
    for label_values, host_durations in durations.items():
        host_durations.add_to(family, label_values)
    return family


def _durations() -> Durations:
    return Durations(REQUEST_BUCKETS)


LAG_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds in seconds."""


class InformerStats(Struct):
    """The statistics of the informer of one resource, which its reflector and its cache update."""

    lists: int = 0
    watches: int = 0
    short_watches: int = 0
    events: int = 0
    by_type: dict[str, int] = field(default_factory=dict)
    revision: int = 0
    objects: int = 0
    unusable: int = 0
    """The number of object versions for which a view, an index or a handler failed."""
    lag: Durations = field(default_factory=lambda: Durations(LAG_BUCKETS))
    """The durations of waits for a revision, until the cache reached it."""

    def record_event(self, event_type: str) -> None:
        self.events += 1
        self.by_type[event_type] = self.by_type.get(event_type, 0) + 1


_COUNTERS: Final[Sequence[tuple[str, str, Callable[[InformerStats], int]]]] = (
    (
        "reflector_lists",
        "Total number of API lists done by the reflectors, including watches with initial events.",
        lambda counts: counts.lists,
    ),
    (
        "reflector_watches",
        "Total number of API watches done by the reflectors.",
        lambda counts: counts.watches,
    ),
    (
        "reflector_short_watches",
        "Total number of short API watches done by the reflectors.",
        lambda counts: counts.short_watches,
    ),
    (
        "informer_unusable_objects",
        "Total number of object versions that a cache or a handler could not process and skipped.",
        lambda counts: counts.unusable,
    ),
)
_GAUGES: Final[Sequence[tuple[str, str, Callable[[InformerStats], int]]]] = (
    (
        "reflector_last_resource_version",
        "Last resource version seen for the reflectors.",
        lambda counts: counts.revision,
    ),
    ("informer_objects", "Number of objects in the caches.", lambda counts: counts.objects),
)


class InformerMetrics(Collector):
    """The metrics of all informers of a process, by resource."""

    def __init__(self) -> None:
        self._counts: dict[str, InformerStats] = {}

    def of(self, resource: str) -> InformerStats:
        return self._counts.setdefault(resource, InformerStats())

    def forget(self, resource: str) -> None:
        self._counts.pop(resource, None)

    def collect(self) -> Iterable[Metric]:
        for name, text, read in _COUNTERS:
            counter = CounterMetricFamily(name, text, labels=["name"])
            for resource, counts in self._counts.items():
                counter.add_metric([resource], read(counts))
            yield counter
        for name, text, read in _GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=["name"])
            for resource, counts in self._counts.items():
                gauge.add_metric([resource], read(counts))
            yield gauge
        yield self._events()
        yield self._lag()

    def _events(self) -> Metric:
        events = CounterMetricFamily(
            "informer_events",
            "Total number of watch events received by the reflectors.",
            labels=["name", "type"],
        )
        for resource, counts in self._counts.items():
            for event_type, count in counts.by_type.items():
                events.add_metric([resource, event_type], count)
        return events

    def _lag(self) -> Metric:
        lag = HistogramMetricFamily(
            "informer_lag_seconds",
            "How long in seconds reconciliations waited until a cache contained their own writes.",
            labels=["name"],
        )
        for resource, counts in self._counts.items():
            counts.lag.add_to(lag, [resource])
        return lag
