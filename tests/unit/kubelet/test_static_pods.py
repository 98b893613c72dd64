"""Static pods: a kubelet runs what is in /etc/kubernetes/manifests on its node."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.controller_manager.control.runnable import Runnable
from mockube.kubelet.installation import NODE_ADDRESS, Installation, address_of_peer
from mockube.kubelet.node_pools.pool import plain_nodes
from mockube.kubelet.running_programs import running_programs
from tests.support.controllers.running_manager import running_cluster, running_manager
from tests.support.controllers.simulated import PODS, SimulatedCluster

FOLDER = "/etc/kubernetes/manifests"
MANIFEST = "{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {containers: [{name: c, image: nginx}]}}"


CONFIG = Config(simulation=Simulation(simulate_nodes=plain_nodes(1)))
RUNNABLES = (SIMULATED_NODES, SIMULATED_PODS)


@pytest.fixture
async def server_alone():
    """A server without a manager."""
    clock = SteppedClock()
    namespaces = ["kube-node-lease", "kube-system"]
    async with running_cluster(clock=clock, runnables=(), namespaces=namespaces) as (server, manager):
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield SimulatedCluster(server, manager, clock)


def manager_of(cluster, config=CONFIG):
    return running_manager(cluster.server, cluster.clock, runnables=RUNNABLES, config=config)


@pytest.fixture
async def cluster(server_alone):
    async with manager_of(server_alone) as manager:
        server_alone.manager = manager
        yield server_alone


async def on_node(cluster, name, script):
    """Run a script in a pod that mounts the folder of the manifests at /v."""
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}
    mounted = {**container, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    volumes = [{"name": "v", "hostPath": {"path": FOLDER}}]
    await cluster.run(name, containers=[mounted], volumes=volumes, restartPolicy="Never")
    await cluster.manager.step(3)


async def events(cluster):
    listed = await cluster.get("/api/v1/namespaces/default/events")
    return [event["message"] for event in listed["items"] if event["reason"] == "FailedStaticPod"]


async def test_manifest_starts_a_pod_that_its_node_owns(cluster):
    await on_node(cluster, "writer", f"echo '{MANIFEST}' > /v/web.yaml")
    pod = await cluster.pod("web-node-1")
    node = await cluster.get("/api/v1/nodes/node-1")
    assert pod["status"]["phase"] == "Running"
    assert pod["metadata"]["labels"] == {"app": "web"}
    annotations = pod["metadata"]["annotations"]
    assert annotations["kubernetes.io/config.mirror"] == annotations["kubernetes.io/config.hash"]
    assert (annotations["kubernetes.io/config.source"], len(annotations["kubernetes.io/config.hash"])) == (
        "file",
        32,
    )
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Node", node["metadata"]["uid"], True)
    assert {"operator": "Exists", "effect": "NoExecute"} in pod["spec"]["tolerations"]


async def test_deletion_of_the_mirror_pod_does_not_stop_the_containers(cluster):
    await on_node(cluster, "writer", f"echo '{MANIFEST}' > /v/web.yaml")
    before = await cluster.pod("web-node-1")
    await cluster.manager.step(60)
    await cluster.server.delete(f"{PODS}/web-node-1")
    await cluster.manager.step(1)
    after = await cluster.pod("web-node-1")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert after["status"]["podIP"] == before["status"]["podIP"]


async def test_deleted_mirror_pod_is_there_until_kubectl_watches_it(cluster):
    await on_node(cluster, "writer", f"echo '{MANIFEST}' > /v/web.yaml")
    before = await cluster.pod("web-node-1")
    await cluster.server.delete(f"{PODS}/web-node-1")
    await cluster.manager.step(0.4)
    deleted = await cluster.pod("web-node-1")
    assert deleted["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" in deleted["metadata"]


async def test_changed_manifest_replaces_the_pod_and_a_removed_one_stops_it(cluster):
    await on_node(cluster, "writer", f"echo '{MANIFEST}' > /v/web.yaml")
    before = await cluster.pod("web-node-1")
    await on_node(cluster, "changer", "sed -i 's/nginx/redis/' /v/web.yaml")
    await cluster.manager.step(40)
    after = await cluster.pod("web-node-1")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["containers"][0]["image"] == "redis"
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    await on_node(cluster, "remover", "rm /v/web.yaml")
    await cluster.manager.step(40)
    assert await cluster.pod("web-node-1") is None


OTHER_BROKEN_MANIFESTS = [
    ("a: 1", "Object 'Kind' is missing"),
    ("{kind: Service, apiVersion: v1}", "invalid pod: v1, Kind=Service"),
    ("{kind: Pod, apiVersion: v1, metadata: {}, spec: {}}", "invalid pod: name is needed for the pod"),
    (
        "{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {serviceAccountName: a}}",
        "static pods may not reference serviceaccounts",
    ),
    ("{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {1: 2, a: {~: 3}}}", "unsupported map key"),
    ("{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: [1]}", "invalid pod"),
    ("{kind: Pod, apiVersion: v1, metadata: {name: p, labels: 3}, spec: {volumes: [1]}}", "invalid pod"),
    (
        "{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {containers: []}}",
        "spec.containers: Required value",
    ),
]


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ("{", "couldn't parse as pod"),
        *(pytest.param(*row, marks=pytest.mark.thorough) for row in OTHER_BROKEN_MANIFESTS),
    ],
)
async def test_broken_manifest_is_reported_and_others_run(cluster, manifest, problem):
    await on_node(cluster, "writer", f"echo '{manifest}' > /v/a.yaml; echo '{MANIFEST}' > /v/web.yaml")
    [message] = await events(cluster)
    assert problem in message
    assert (await cluster.pod("web-node-1"))["status"]["phase"] == "Running"


async def test_installed_manifest_runs_until_it_is_removed(server_alone):
    installed = Installation(files={"node-1": {f"{FOLDER}/web.yaml": MANIFEST}})
    config = Config(simulation=Simulation(simulate_nodes=plain_nodes(1), installation=installed))
    async with manager_of(server_alone, config) as server_alone.manager:
        await server_alone.manager.settle()
        before = await server_alone.pod("web-node-1")
        assert before["status"]["phase"] == "Running"
    async with manager_of(server_alone, config) as server_alone.manager:
        await server_alone.manager.settle()
        assert (await server_alone.pod("web-node-1"))["metadata"]["uid"] == before["metadata"]["uid"]
        await on_node(server_alone, "mover", "mv /v/web.yaml /v/.web.yaml")
        await server_alone.manager.step(40)
        assert await server_alone.pod("web-node-1") is None
    async with manager_of(server_alone, config) as server_alone.manager:
        await server_alone.manager.settle()
        assert await server_alone.pod("web-node-1") is None


async def test_installed_manifest_has_the_addresses_of_the_nodes_that_are_there(server_alone):
    members = ",".join(f"{name}=https://{address_of_peer(name)}:2380" for name in ("node-2", "node-9"))
    command = f"[sleep, infinity, '{members},node-1=https://{NODE_ADDRESS}:2380']"
    manifest = MANIFEST.replace("image: nginx", f"image: busybox, command: {command}")
    installed = Installation(files={"node-1": {f"{FOLDER}/web.yaml": manifest}})
    config = Config(simulation=Simulation(simulate_nodes=plain_nodes(2), installation=installed))
    async with manager_of(server_alone, config) as server_alone.manager:
        await server_alone.manager.step(5)
        assert await server_alone.pod("web-node-1") is None  # node-9 may be registered soon
        await server_alone.manager.step(6)
        [container] = (await server_alone.pod("web-node-1"))["spec"]["containers"]
        assert container["command"][2] == "node-2=https://172.18.0.2:2380,node-1=https://172.18.0.1:2380"


async def test_mirror_pods_of_a_node_without_files_are_left_alone(cluster):
    annotations = {"kubernetes.io/config.mirror": "a", "kubernetes.io/config.hash": "a"}
    spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "nginx"}]}
    await cluster.server.post(PODS, {"metadata": {"name": "p", "annotations": annotations}, "spec": spec})
    await cluster.manager.settle()
    assert (await cluster.pod())["status"]["phase"] == "Running"


async def test_programs_of_a_stopped_kubelet_run_on_after_a_restart_of_the_manager(server_alone):
    manifest = MANIFEST.replace("image: nginx", "image: nginx, command: [sleep, infinity]")
    installed = Installation(files={"node-1": {f"{FOLDER}/web.yaml": manifest}})
    config = Config(simulation=Simulation(simulate_nodes=plain_nodes(1), installation=installed))
    async with manager_of(server_alone, config) as server_alone.manager:
        await on_node(server_alone, "writer", "touch /v/.changed")  # so that the files of the node are kept
        stopped = {"metadata": {"annotations": {"mockube.dev/stopped-units": "kubelet"}}}
        await server_alone.server.patch("/api/v1/nodes/node-1", stopped)
        await server_alone.manager.step(3)
    programs = []

    def build(context):
        programs.append(running_programs(context))
        return Idle()

    observer = Runnable(name="observer", service_account="", build=build)
    runnables = (*RUNNABLES, observer)
    async with running_manager(server_alone.server, server_alone.clock, runnables=runnables, config=config):
        assert programs[0].runs("sleep") == {"node-1": 0}


class Idle:
    async def run(self):
        """Do nothing."""
        await asyncio.get_running_loop().create_future()
