"""The metrics of zones have kube-controller-manager's names and labels."""

from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.controllers.nodelifecycle.monitor import NodeMonitor
from mockube.controller_manager.controllers.nodelifecycle.zones import ZoneSize
from tests.support.metric_samples import sample_value


def test_zones_are_reported_with_their_nodes_and_evictions():
    registry = MetricsRegistry()
    monitor = NodeMonitor(registry)
    monitor.report_zones({":": ZoneSize(nodes=1), "r:z": ZoneSize(nodes=3, not_ready=1)})
    monitor.record_eviction("r:z")
    zone = {"zone": "r:\x00:z"}
    found = {
        name: (sample_value(registry, f"node_collector_{name}", {"zone": ""}), value)
        for name in ("zone_size", "unhealthy_nodes_in_zone", "zone_health", "evictions_total")
        for value in [sample_value(registry, f"node_collector_{name}", zone)]
    }
    assert found == {
        "zone_size": (1, 3),
        "unhealthy_nodes_in_zone": (0, 1),
        "zone_health": (100, 66),
        "evictions_total": (0, 1),
    }
