"""The number of simulated nodes follows a ConfigMap, while the manager runs and after its restart."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import SIMULATED_NODES
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.kubelet.node_pools.flag import read_nodes
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import running_manager
from tests.support.controllers.simulated import MERGE, NODES, SimulatedCluster, simulated_cluster
from tests.support.server.apiserver import running

ZONE = "topology.kubernetes.io/zone"


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


@pytest.mark.thorough
async def test_config_map_sets_number_of_nodes(cluster):
    assert await resize(cluster, nodes="4") == [f"node-{n}" for n in (1, 2, 3, 4)]
    assert (await cluster.get(f"{NODES}/node-4"))["status"]["conditions"][-1]["status"] == "True"
    assert await resize(cluster, nodes="1") == ["node-1"]
    assert await resize(cluster, nodes="0") == []


async def test_config_map_sets_pools(cluster):
    names = ["gpu-1", "gpu-2", "node-1", "node-2", "node-3"]
    assert await resize(cluster, nodes="zone=a,zone=b:3, name=gpu,gpu=8:2") == names
    zones = [(await cluster.get(f"{NODES}/node-{n}"))["metadata"]["labels"][ZONE] for n in (1, 2, 3)]
    assert zones == ["a", "b", "a"]
    gpu_node = await cluster.get(f"{NODES}/gpu-1")
    assert gpu_node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert gpu_node["status"]["conditions"][-1]["status"] == "True"
    assert await resize(cluster, nodes="name=gpu,gpu=4:1") == ["gpu-1"]
    gpu_node = await cluster.get(f"{NODES}/gpu-1")
    assert gpu_node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert await resize(cluster, nodes="1") == ["node-1"]
    assert ZONE not in (await cluster.get(f"{NODES}/node-1"))["metadata"]["labels"]


@pytest.mark.thorough
async def test_every_node_has_own_address(cluster):
    for pools in ("2, name=a,cpu=4:2", "name=a,cpu=4:3, 4, name=b,cpu=4:2", "name=b,cpu=4:6, 1"):
        names = await resize(cluster, nodes=pools)
        nodes = [await cluster.get(f"{NODES}/{name}") for name in names]
        addresses = {node["status"]["addresses"][0]["address"] for node in nodes}
        assert len(addresses) == len(names)
        pods = [await cluster.run(f"{name}-{len(names)}", node=name) for name in names]
        assert {pod["status"]["hostIP"] for pod in pods} == addresses
        assert len({pod["status"]["podIP"] for pod in pods}) == len(names)


async def test_changed_shape_does_not_take_back_what_a_user_changed(cluster):
    await resize(cluster, nodes="cpu=4,label=disk=ssd:1")
    change = {"metadata": {"labels": {"disk": "hdd", "mine": "1"}}}
    await cluster.server.patch(f"{NODES}/node-1", change, **MERGE)
    await resize(cluster, nodes="cpu=4,label=disk=ssd:1")
    assert (await cluster.get(f"{NODES}/node-1"))["metadata"]["labels"]["disk"] == "hdd"
    await resize(cluster, nodes="cpu=8:1")
    labels = (await cluster.get(f"{NODES}/node-1"))["metadata"]["labels"]
    assert (labels.get("disk"), labels["mine"]) == (None, "1")


@pytest.mark.thorough
async def test_restarted_manager_changes_nodes_of_changed_pools():
    clock = SteppedClock()
    async with running(clock=clock) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        for text, cpus in (("2", "32"), ("cpu=4:2", "4"), ("2", "32")):
            config = Config(simulation=Simulation(simulate_nodes=read_nodes(text)))
            async with running_manager(server, clock, runnables=[SIMULATED_NODES], config=config) as manager:
                await manager.settle()
                nodes = (await server.get(NODES)).body["items"]
                assert [node["status"]["capacity"]["cpu"] for node in nodes] == [cpus, cpus]


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


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ("", '"" is neither a number of nodes nor pools'),
        ("-1", '"-1" is neither a number of nodes nor pools'),
        ("5000", "at most 4096 nodes can have addresses"),
        ("cpus=4:1", 'unknown key "cpus": did you mean "cpu"?'),
    ],
)
async def test_invalid_nodes_are_ignored(cluster, caplog, nodes, problem):
    assert await resize(cluster, nodes=nodes) == ["node-1", "node-2"]
    assert f"mockube-nodes is ignored: nodes: {problem}" in caplog.text
