"""The metrics of the node lifecycle controller."""

from collections.abc import Mapping, Sequence

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.metrics import Registry
from mockube.controller_manager.metrics import families

from .zones import count_not_ready, label_of


class NodeMonitor:
    def __init__(self, metrics: Registry) -> None:
        self._evictions = metrics.numbers(families.NODE_EVICTIONS)
        self._unhealthy = metrics.numbers(families.UNHEALTHY_NODES)
        self._health = metrics.numbers(families.ZONE_HEALTH)
        self._sizes = metrics.numbers(families.ZONE_SIZE)
        self.all_nodes = metrics.distributions(families.ALL_NODES_HEALTH_DURATION).of()
        self.node = metrics.distributions(families.NODE_HEALTH_DURATION).of()

    def record_eviction(self, zone: str) -> None:
        self._evictions.add(1, label_of(zone))

    def report_zones(self, zones: Mapping[str, Sequence[ReadOnlyTree]]) -> None:
        """Set the sizes and the health of zones. The number of evictions of a known zone is 0 at first."""
        sizes = {label_of(zone): len(nodes) for zone, nodes in zones.items()}
        unhealthy = {label_of(zone): count_not_ready(nodes) for zone, nodes in zones.items()}
        self._sizes.replace(((zone,), size) for zone, size in sizes.items())
        self._unhealthy.replace(((zone,), count) for zone, count in unhealthy.items())
        self._health.replace(
            ((zone,), 100 * (size - unhealthy[zone]) // size) for zone, size in sizes.items()
        )
        for zone in sizes:
            self._evictions.of(zone)
