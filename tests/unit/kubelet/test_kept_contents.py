"""Contents of volumes outlive the manager: they are kept as Secrets."""

from base64 import b64decode, b64encode

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.simulated.files.stored_contents import decode
from mockube.controller_manager.components import SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import running_cluster, running_manager
from tests.support.controllers.simulated import PODS, SimulatedCluster

SECRETS = "/api/v1/namespaces/kube-system/secrets"
NODE_SECRET = f"{SECRETS}/mockube-node-node-1"
HOST = [{"name": "v", "hostPath": {"path": "/srv"}}]
EMPTY = [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]
CONFIG = Config(simulation=Simulation(simulate_nodes=plain_nodes(1)))
RUNNABLES = (SIMULATED_NODES, SIMULATED_PODS)


@pytest.fixture
async def cluster():
    """A server without a manager."""
    clock = SteppedClock()
    namespaces = ["kube-node-lease", "kube-system"]
    async with running_cluster(clock=clock, runnables=(), namespaces=namespaces) as (server, manager):
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield SimulatedCluster(server, manager, clock)


def manager_of(cluster):
    return running_manager(cluster.server, cluster.clock, runnables=RUNNABLES, config=CONFIG)


async def run(cluster, manager, name, script, volumes=HOST, **spec):
    """Run a pod with a volume at /v; return its state after some time."""
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}
    mounted = {**container, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    await cluster.run(name, containers=[mounted], volumes=volumes, restartPolicy="Never", **spec)
    await manager.step(8)
    return await cluster.pod(name)


async def files_of(cluster, path=NODE_SECRET):
    secret = await cluster.get(path)
    files = decode(b64decode(secret["data"]["contents"])).files
    return {path: entry.data for path, entry in files.items() if entry.data is not None}


async def test_restarted_manager_has_the_files_of_a_node(cluster):
    async with manager_of(cluster) as manager:
        await run(cluster, manager, "writer", "echo 1 > /v/x")
        assert await files_of(cluster) == {"/srv/x": b"1\n"}
        node = await cluster.get("/api/v1/nodes/node-1")
        [owner] = (await cluster.get(NODE_SECRET))["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Node", node["metadata"]["uid"])
    async with manager_of(cluster) as manager:
        reader = await run(cluster, manager, "reader", "grep 1 /v/x && echo 2 >> /v/x")
        assert reader["status"]["phase"] == "Succeeded"
        assert await files_of(cluster) == {"/srv/x": b"1\n2\n"}


async def test_end_of_the_manager_writes_what_has_changed(cluster):
    async with manager_of(cluster) as manager:
        await cluster.run(
            containers=[
                {
                    "name": "c",
                    "image": "busybox",
                    "command": ["sh", "-c", "echo 1 > /v/x; sleep 3600"],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                }
            ],
            volumes=HOST,
        )
        await manager.settle()
        assert await cluster.get(NODE_SECRET) is None
    assert await files_of(cluster) == {"/srv/x": b"1\n"}


async def test_contents_that_others_replace_are_those_of_containers(cluster):
    async with manager_of(cluster) as manager:
        await run(cluster, manager, "writer", "echo 1 > /v/x")
        earlier = await cluster.get(NODE_SECRET)
        await run(cluster, manager, "second", "echo 2 > /v/x")
        del earlier["metadata"]["resourceVersion"]
        await cluster.server.put(NODE_SECRET, earlier)
        await manager.settle()
        reader = await run(cluster, manager, "reader", "grep 1 /v/x")
        assert reader["status"]["phase"] == "Succeeded"
        await cluster.server.delete(NODE_SECRET)
        await manager.settle()
        reader = await run(cluster, manager, "last", "ls /v/x")
        assert reader["status"]["phase"] == "Failed"


async def test_contents_that_cannot_be_read_are_reported(cluster):
    async with manager_of(cluster) as manager:
        await run(cluster, manager, "first", "echo 1 > /v/x")
    secret = await cluster.get(NODE_SECRET)
    del secret["metadata"]["resourceVersion"]
    await cluster.server.put(NODE_SECRET, {**secret, "data": {"contents": b64encode(b"broken").decode()}})
    async with manager_of(cluster) as manager:
        pod = await run(cluster, manager, "second", "ls /v/x || echo 2 > /v/y")
        assert pod["status"]["phase"] == "Succeeded"
        events = (await cluster.get("/api/v1/namespaces/default/events"))["items"]
        [event] = [event for event in events if event["reason"] == "ContentsLost"]
        assert event["involvedObject"]["kind"] == "Node"
        assert "The kept contents of the host paths of node node-1 are lost" in event["message"]
        assert await files_of(cluster) == {"/srv/y": b"2\n"}


async def test_contents_of_a_pod_end_with_it(cluster):
    script = "echo 1 > /v/x; dd if=/dev/zero of=/v/zeros bs=1 count=1; sleep 3600"
    async with manager_of(cluster) as manager:
        pod = await run(cluster, manager, "p", script, EMPTY)
        path = f"{SECRETS}/mockube-pod-{pod['metadata']['uid']}-v"
        assert await files_of(cluster, path) == {"/x": b"1\n", "/zeros": b"\0"}
    async with manager_of(cluster) as manager:
        await cluster.server.delete(f"{PODS}/p?gracePeriodSeconds=0")
        await manager.step(1)
        assert await cluster.get(path) is None


async def test_container_has_a_seccomp_profile_that_a_pod_has_written(cluster):
    folder = [{"name": "v", "hostPath": {"path": "/var/lib/kubelet/seccomp"}}]
    profile = {"seccompProfile": {"type": "Localhost", "localhostProfile": "audit.json"}}
    audited = {"containers": [{"name": "c", "image": "nginx", "securityContext": profile}]}
    async with manager_of(cluster) as manager:
        status = (await cluster.run("before", **audited))["status"]
        assert (
            status["containerStatuses"][0]["state"].get("waiting", {}).get("reason") == "CreateContainerError"
        )
        await run(cluster, manager, "writer", "echo '{}' > /v/audit.json", folder)
        assert (await cluster.run("after", **audited))["status"]["phase"] == "Running"
        await cluster.server.delete(f"{PODS}/writer")
    async with manager_of(cluster):
        assert (await cluster.run("last", **audited))["status"]["phase"] == "Running"
