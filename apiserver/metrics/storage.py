"""Metrics of the store: the numbers of objects, and the results of consistency checks of the watch cache."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.groups import GroupResource
from mockube.etcd.errors import KVError
from mockube.etcd.kv import KV


class ObjectMetrics(Collector):
    """The numbers of objects, which `counts` returns at each scrape."""

    def __init__(self, counts: Callable[[], Mapping[GroupResource, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects stored, by resource.", labels=["resource"]
        )
        by_group = GaugeMetricFamily(
            "apiserver_resource_objects",
            "Objects stored, by group and resource.",
            labels=["group", "resource"],
        )
        for resource, count in self._counts().items():
            objects.add_metric([str(resource)], count)
            by_group.add_metric([resource.group, resource.resource], count)
        yield objects
        yield by_group


async def storage_size(kv: KV) -> Iterable[Metric]:
    """Return the size of the store; nothing if it cannot be reached."""
    try:
        size = (await kv.status()).size
    except KVError:
        return ()
    family = GaugeMetricFamily(
        "apiserver_storage_size_bytes", "Size of the store in bytes.", labels=["storage_cluster_id"]
    )
    family.add_metric(["etcd-0"], size)
    return (family,)


class ConsistencyMetrics(Collector):
    """The results of consistency checks by resource; `resources` maps prefixes of the store to resources."""

    def __init__(self, resources: Mapping[bytes, GroupResource]) -> None:
        self._resources = resources
        self._checks: Counter[tuple[GroupResource, str]] = Counter()

    def count(self, prefix: bytes, status: str) -> None:
        self._checks[self._resources[prefix], status] += 1

    def collect(self) -> Iterable[Metric]:
        checks = CounterMetricFamily(
            "apiserver_storage_consistency_checks",
            "Comparisons of the watch cache with the store, by result.",
            labels=["group", "resource", "status"],
        )
        for (resource, status), count in self._checks.items():
            checks.add_metric([resource.group, resource.resource, status], count)
        yield checks


class DecodeMetrics(Collector):
    """The number of stored values that could not be read as objects: upstream's metric under upstream's name."""

    def __init__(self, failures: Mapping[bytes, int], resources: Mapping[bytes, GroupResource]) -> None:
        self._failures = failures
        self._resources = resources

    def collect(self) -> Iterable[Metric]:
        errors = CounterMetricFamily(
            "apiserver_storage_decode_errors",
            "Stored values that could not be read as the objects that their keys name.",
            labels=["group", "resource"],
        )
        for folder, count in self._failures.items():
            if (resource := self._resources.get(folder)) is not None:
                errors.add_metric([resource.group, resource.resource], count)
        yield errors
