"""The desired nodes come from flags and from the ConfigMap, which may change while the manager runs."""

import pytest

from mockube.controller_manager.config.settings import Simulation
from mockube.controller_manager.kubelet.resizing import DesiredNodes, desired_nodes

FLAGS = Simulation(simulate_nodes=3, simulate_node_zones=("a",), node_labels=(("disk", "ssd"),))
BY_FLAGS = DesiredNodes(nodes=3, zones=("a",), labels={"disk": "ssd"})


@pytest.mark.parametrize(
    ("data", "meant"),
    [
        pytest.param(None, BY_FLAGS, id="no ConfigMap"),
        pytest.param(
            {"nodes": "5"},
            DesiredNodes(nodes=5, zones=("a",), labels={"disk": "ssd"}, deletes_surplus=True),
            id="number only, rest from flags",
        ),
        pytest.param(
            {"nodes": "1", "zones": "x,y", "labels": "tier=front"},
            DesiredNodes(nodes=1, zones=("x", "y"), labels={"tier": "front"}, deletes_surplus=True),
            id="all fields set",
        ),
        pytest.param({"nodes": "many"}, BY_FLAGS, id="unparsable number"),
    ],
)
def test_desired_nodes_follow_config_map(data, meant):
    assert desired_nodes(None if data is None else {"data": data}, FLAGS) == meant
