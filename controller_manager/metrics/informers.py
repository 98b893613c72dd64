"""What reflectors and informers count: upstream's names where upstream has one."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct, field
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.controller_manager.metrics.durations import Durations

LAG_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds."""


class InformerCounts(Struct):
    """The plain numbers of one resource; counting is on the way of every event."""

    lists: int = 0
    watches: int = 0
    short_watches: int = 0
    events: int = 0
    by_type: dict[str, int] = field(default_factory=dict)
    revision: int = 0
    objects: int = 0
    unusable: int = 0
    """Versions of objects that a view, an index or a handler could not take."""
    lag: Durations = field(default_factory=lambda: Durations(LAG_BUCKETS))
    """From the start of a wait for a revision until the cache reached it."""

    def take(self, event_type: str) -> None:
        self.events += 1
        self.by_type[event_type] = self.by_type.get(event_type, 0) + 1


_COUNTERS: Final[Sequence[tuple[str, str, Callable[[InformerCounts], int]]]] = (
    ("reflector_lists", "Lists, and watches that began with one.", lambda counts: counts.lists),
    ("reflector_watches", "Watches begun.", lambda counts: counts.watches),
    ("reflector_short_watches", "Watches that ended at once.", lambda counts: counts.short_watches),
    (
        "informer_unusable_objects",
        "Versions of objects that a cache or a handler could not take, and that are passed over.",
        lambda counts: counts.unusable,
    ),
)
_GAUGES: Final[Sequence[tuple[str, str, Callable[[InformerCounts], int]]]] = (
    ("reflector_last_resource_version", "How far a cache has come.", lambda counts: counts.revision),
    ("informer_objects", "Objects in a cache.", lambda counts: counts.objects),
)


class InformerMetrics(Collector):
    """All informers of a process, by resource."""

    def __init__(self) -> None:
        self._counts: dict[str, InformerCounts] = {}

    def of(self, resource: str) -> InformerCounts:
        return self._counts.setdefault(resource, InformerCounts())

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
        events = CounterMetricFamily("informer_events", "Events of watches.", labels=["name", "type"])
        for resource, counts in self._counts.items():
            for event_type, count in counts.by_type.items():
                events.add_metric([resource, event_type], count)
        return events

    def _lag(self) -> Metric:
        lag = HistogramMetricFamily(
            "informer_lag_seconds",
            "How long reconciliations waited until a cache contained their own writes.",
            labels=["name"],
        )
        for resource, counts in self._counts.items():
            counts.lag.add_to(lag, [resource])
        return lag
