"""Changes of a node's status by another client, and what a simulated kubelet makes of them."""

import pytest

from mockube.apimachinery.schema.minors import NEWEST, RELEASES
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import SIMULATED_NODES
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.kubelet.node_pools.flag import read_nodes
from mockube.kubelet.node_pools.pool import plain_nodes
from mockube.kubelet.node_pools.reading import read_value
from tests.support.controllers.running_manager import running_cluster, running_manager
from tests.support.controllers.simulated import MERGE, NODES, SimulatedCluster, simulated_cluster

NODE = f"{NODES}/node-1"
DONGLE = "example.com/dongle"
JSON_PATCH = {"kind": "json-patch+json"}


@pytest.fixture
async def cluster():
    async with simulated_cluster(runnables=[SIMULATED_NODES]) as cluster:
        yield cluster


async def patch_status(cluster, status, path=NODE):
    answer = await cluster.server.patch(f"{path}/status", {"status": status}, **MERGE)
    assert answer.status == 200, answer.data
    await cluster.manager.settle()
    return (await cluster.get(path))["status"]


async def test_added_resource_becomes_allocatable(cluster):
    """As the page "Advertise Extended Resources for a Node" of Kubernetes' documentation adds and removes it."""
    pointer = f"/status/capacity/{DONGLE.replace('/', '~1')}"
    await cluster.server.patch(f"{NODE}/status", [{"op": "add", "path": pointer, "value": "4"}], **JSON_PATCH)
    await cluster.manager.settle()
    status = (await cluster.get(NODE))["status"]
    assert (status["capacity"][DONGLE], status["allocatable"][DONGLE]) == ("4", "4")
    await cluster.server.patch(f"{NODE}/status", [{"op": "remove", "path": pointer}], **JSON_PATCH)
    await cluster.manager.settle()
    status = (await cluster.get(NODE))["status"]
    assert DONGLE not in {*status["capacity"], *status["allocatable"]}


@pytest.mark.thorough
async def test_added_resource_survives_heartbeats_and_a_restart(cluster):
    await patch_status(cluster, {"capacity": {DONGLE: "4"}})
    await cluster.manager.step(601)
    config = Config(simulation=Simulation(simulate_nodes=plain_nodes(2)))
    async with running_manager(
        cluster.server, cluster.clock, runnables=[SIMULATED_NODES], config=config
    ) as second:
        await second.step(301)
        status = (await cluster.get(NODE))["status"]
        assert (status["capacity"][DONGLE], status["allocatable"][DONGLE]) == ("4", "4")
        assert not [write for write in second.transport.writes if write[1] == f"{NODE}/status"][1:]


async def test_resource_survives_a_change_of_the_pool(cluster):
    await patch_status(cluster, {"capacity": {DONGLE: "4"}})
    config = Config(simulation=Simulation(simulate_nodes=read_nodes("cpu=8:2")))
    async with running_manager(
        cluster.server, cluster.clock, runnables=[SIMULATED_NODES], config=config
    ) as second:
        await second.settle()
        status = (await cluster.get(NODE))["status"]
        assert (status["capacity"]["cpu"], status["allocatable"][DONGLE]) == ("8", "4")


async def test_one_write_corrects_a_status(cluster):
    before = len(cluster.writes(f"{NODE}/status"))
    await patch_status(cluster, {"capacity": {DONGLE: "4", "cpu": None, "memory": "1Gi"}})
    status = (await cluster.get(NODE))["status"]
    assert (status["capacity"]["cpu"], status["allocatable"]["memory"]) == ("32", "1Gi")
    assert len(cluster.writes(f"{NODE}/status")) == before + 1


@pytest.mark.thorough
async def test_other_values_of_a_client_are_kept(cluster):
    """A real kubelet takes all of this back; here it is the way to simulate it."""
    pressure = {"type": "MemoryPressure", "status": "True", "reason": "Test", "message": "for a test"}
    conditions = [pressure, *(await cluster.get(NODE))["status"]["conditions"][1:]]
    images = [{"names": ["nginx:1"], "sizeBytes": 1000}]
    mine = {"allocatable": {"cpu": "2"}, "conditions": conditions, "images": images}
    await patch_status(cluster, mine)
    await cluster.manager.step(301)
    status = (await cluster.get(NODE))["status"]
    assert (status["allocatable"]["cpu"], status["images"]) == ("2", images)
    assert status["conditions"][0]["status"] == "True"


@pytest.mark.thorough
async def test_node_that_is_not_ready_becomes_ready_again(cluster):
    conditions = (await cluster.get(NODE))["status"]["conditions"]
    conditions[-1] |= {"status": "False", "reason": "Test"}
    status = await patch_status(cluster, {"conditions": conditions})
    assert (status["conditions"][-1]["status"], status["conditions"][-1]["reason"]) == (
        "True",
        "KubeletReady",
    )


async def test_removed_addresses_return(cluster):
    addresses = (await cluster.get(NODE))["status"]["addresses"]
    assert (await patch_status(cluster, {"addresses": None}))["addresses"] == addresses


async def test_disconnected_node_corrects_nothing_until_it_returns(cluster):
    await cluster.annotate(NODE, "mockube.dev/stop-heartbeats", "true")
    assert DONGLE not in (await patch_status(cluster, {"capacity": {DONGLE: "4"}}))["allocatable"]
    await cluster.annotate(NODE, "mockube.dev/stop-heartbeats", None)
    assert (await cluster.get(NODE))["status"]["allocatable"][DONGLE] == "4"


@pytest.mark.thorough
async def test_node_of_another_program_keeps_its_reservation(cluster):
    annotations = {"kwok.x-k8s.io/node": "fake"}
    status = {"capacity": {"cpu": "8", "a.b/gpu": "8"}, "allocatable": {"cpu": "7", "a.b/gpu": "7"}}
    body = {"metadata": {"name": "fake", "annotations": annotations}, "status": status}
    await cluster.server.post(NODES, body)
    await cluster.manager.settle()
    status = (await cluster.get(f"{NODES}/fake"))["status"]
    assert status["allocatable"] == {"cpu": "7", "a.b/gpu": "7"}
    status = await patch_status(cluster, {"capacity": {"a.b/gpu": "4", DONGLE: "2"}}, f"{NODES}/fake")
    assert status["allocatable"] == {"cpu": "7", "a.b/gpu": "3", DONGLE: "2"}


@pytest.mark.thorough
async def test_kwoks_simulation_corrects_nothing():
    async with simulated_cluster(runnables=[SIMULATED_NODES], simulate_kubelet_details=False) as cluster:
        assert DONGLE not in (await patch_status(cluster, {"capacity": {DONGLE: "4"}}))["allocatable"]


async def version(cluster, path=NODE):
    return (await cluster.get(path))["status"]["nodeInfo"]["kubeletVersion"]


@pytest.mark.thorough
async def test_kubelet_has_the_version_of_its_server(cluster):
    """Also after a restart with another minor: the node then has the version of the server before."""
    newest = f"v{RELEASES[NEWEST]}"
    assert await version(cluster) == newest
    await patch_status(cluster, {"nodeInfo": {"kubeletVersion": "v1.35.4", "osImage": "mine"}})
    info = (await cluster.get(NODE))["status"]["nodeInfo"]
    assert (info["kubeletVersion"], info["osImage"]) == (newest, "mine")


@pytest.mark.thorough
async def test_kubelets_are_upgraded_one_by_one_by_an_annotation(cluster):
    await cluster.annotate(NODE, "mockube.dev/kubelet-version", "1.36")
    info = (await cluster.get(NODE))["status"]["nodeInfo"]
    assert (info["kubeletVersion"], info.get("runningInUserNamespace")) == (f"v{RELEASES['1.36']}", None)
    assert await version(cluster, f"{NODES}/node-2") == f"v{RELEASES[NEWEST]}"
    await cluster.annotate(NODE, "mockube.dev/kubelet-version", None)
    assert await version(cluster) == f"v{RELEASES[NEWEST]}"


@pytest.mark.thorough
async def test_kubelet_outside_of_the_skew_policy_gets_the_nearest_version(cluster, caplog):
    await cluster.annotate(NODE, "mockube.dev/kubelet-version", "1.30")
    assert await version(cluster) == f"v{RELEASES['1.34']}"
    assert "does not support mockube.dev/kubelet-version=1.30" in caplog.text


async def test_version_of_a_node_of_another_program_is_kept(cluster):
    annotations = {"kwok.x-k8s.io/node": "fake"}
    body = {"metadata": {"name": "fake", "annotations": annotations}}
    body["status"] = {"nodeInfo": {"kubeletVersion": "fake"}}
    await cluster.server.post(NODES, body)
    await cluster.manager.settle()
    assert await version(cluster, f"{NODES}/fake") == "fake"
    await cluster.annotate(f"{NODES}/fake", "mockube.dev/kubelet-version", "1.36")
    assert await version(cluster, f"{NODES}/fake") == f"v{RELEASES['1.36']}"


@pytest.mark.thorough
async def test_new_node_has_the_version_that_its_pool_sets():
    pools = read_value([{"count": 1, "annotations": {"mockube.dev/kubelet-version": "1.35"}}])
    config = Config(simulation=Simulation(simulate_nodes=pools))
    clock = SteppedClock()
    namespaces = ["kube-node-lease"]
    async with running_cluster(
        clock=clock, runnables=[SIMULATED_NODES], config=config, namespaces=namespaces
    ) as (server, manager):
        cluster = SimulatedCluster(server, manager, clock)
        assert await version(cluster) == f"v{RELEASES['1.35']}"
