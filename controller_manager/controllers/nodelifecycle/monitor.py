"""The metrics of the node lifecycle controller."""

from collections.abc import Mapping

from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager import metric_families as families

from .zones import ZoneSize, label_of


class NodeMonitor:
    def __init__(self, metrics: MetricsRegistry) -> None:
        self._evictions = metrics.numbers(families.NODE_EVICTIONS)
        self._unhealthy = metrics.numbers(families.UNHEALTHY_NODES)
        self._health = metrics.numbers(families.ZONE_HEALTH)
        self._sizes = metrics.numbers(families.ZONE_SIZE)
        self.all_nodes = metrics.distributions(families.ALL_NODES_HEALTH_DURATION).of()
        self.node = metrics.distributions(families.NODE_HEALTH_DURATION).of()

    def record_eviction(self, zone: str) -> None:
        self._evictions.add(1, label_of(zone))

    def report_zones(self, zones: Mapping[str, ZoneSize]) -> None:
        """Set the sizes and the health of zones. The number of evictions of a known zone is 0 at first."""
        sizes = {label_of(zone): size for zone, size in zones.items()}
        self._sizes.replace(((zone,), size.nodes) for zone, size in sizes.items())
        self._unhealthy.replace(((zone,), size.not_ready) for zone, size in sizes.items())
        self._health.replace(
            ((zone,), 100 * (size.nodes - size.not_ready) // size.nodes) for zone, size in sizes.items()
        )
        for zone in sizes:
            self._evictions.of(zone)
