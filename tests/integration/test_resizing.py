"""The number of simulated nodes follows a ConfigMap, while the manager runs and after its restart."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.config.node_pools.pool import plain_nodes
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.controller_manager.kubelet.nodes import SIMULATED_NODES
from tests.support.controllers.running_manager import running_manager
from tests.support.controllers.simulated import NODES, SimulatedCluster, simulated_cluster
from tests.support.server.apiserver import running


@pytest.fixture
async def cluster():
    async with simulated_cluster() as cluster:
        yield cluster


async def resize(cluster, **data):
    """As `mockube nodes` does."""
    path = "/api/v1/namespaces/kube-system/configmaps"
    await cluster.server.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
    body = {"metadata": {"name": "mockube-nodes"}, "data": data}
    answer = await cluster.server.put(f"{path}/mockube-nodes", body)
    if answer.status == 404:
        answer = await cluster.server.post(path, body)
    assert answer.status < 300
    await cluster.manager.settle()
    return [node["metadata"]["name"] for node in (await cluster.get(NODES))["items"]]


async def test_config_map_sets_number_of_nodes(cluster):
    assert await resize(cluster, nodes="4", zones="a,b", labels="disk=ssd") == [
        f"node-{n}" for n in (1, 2, 3, 4)
    ]
    labels = (await cluster.get(f"{NODES}/node-4"))["metadata"]["labels"]
    assert (labels["topology.kubernetes.io/zone"], labels["disk"]) == ("b", "ssd")
    assert labels["kubernetes.io/hostname"] == "node-4"
    assert (await cluster.get(f"{NODES}/node-4"))["status"]["conditions"][-1]["status"] == "True"
    assert await resize(cluster, nodes="1") == ["node-1"]
    assert await resize(cluster, nodes="0") == []


async def test_foreign_nodes_are_not_counted(cluster):
    fake = {"metadata": {"name": "fake", "annotations": {"kwok.x-k8s.io/node": "fake"}}}
    real = {"metadata": {"name": "node-9"}}
    for node in (fake, real):
        await cluster.server.post(NODES, node)
    assert await resize(cluster, nodes="1") == ["fake", "node-1", "node-9"]


async def test_deleted_node_returns_when_requested(cluster):
    await cluster.server.delete(f"{NODES}/node-2")
    await cluster.manager.step(60)
    assert await cluster.get(f"{NODES}/node-2") is None
    assert await resize(cluster, nodes="2") == ["node-1", "node-2"]


async def test_restarted_manager_keeps_requested_number():
    clock = SteppedClock()
    config = Config(simulation=Simulation(simulate_nodes=plain_nodes(2)))
    async with running(clock=clock) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        for nodes in ("3", "1"):
            async with running_manager(server, clock, runnables=[SIMULATED_NODES], config=config) as manager:
                await resize(SimulatedCluster(server, manager, clock), nodes=nodes)
            async with running_manager(server, clock, runnables=[SIMULATED_NODES], config=config):
                assert len((await server.get(NODES)).body["items"]) == int(nodes)


@pytest.mark.parametrize("nodes", ["", "-1", "many", "99999"])
async def test_invalid_number_of_nodes_is_ignored(cluster, caplog, nodes):
    assert await resize(cluster, nodes=nodes) == ["node-1", "node-2"]
    assert "mockube-nodes is ignored: nodes must be a number from 0 to 4096" in caplog.text
