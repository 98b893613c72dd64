"""How often the watch cache was compared with the store, and how it went: upstream's metric under upstream's name."""

from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from apimachinery.groups import GroupResource


class ConsistencyMetrics(Collector):
    """Counts by resource; `resources` says whose objects lie below a prefix of the store."""

    def __init__(self, resources: Mapping[bytes, GroupResource]) -> None:
        self._resources = resources
        self._checks: Counter[tuple[GroupResource, str]] = Counter()

    def count(self, prefix: bytes, status: str) -> None:
        self._checks[self._resources[prefix], status] += 1

    def collect(self) -> Iterable[Metric]:
        checks = CounterMetricFamily(
            "apiserver_storage_consistency_checks",
            "Comparisons of the watch cache with the store, by how they ended.",
            labels=["group", "resource", "status"],
        )
        for (resource, status), count in self._checks.items():
            checks.add_metric([resource.group, resource.resource, status], count)
        yield checks
