"""How many objects the server holds, by resource: upstream's metrics under upstream's names."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ObjectMetrics(Collector):
    """Asks when Prometheus does; nothing is counted in between."""

    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects stored, by resource.", labels=["resource"]
        )
        for resource, count in self._counts().items():
            objects.add_metric([resource], count)
        yield objects
