"""Simulated nodes and pods with a real server, on a clock that the test steps."""

from ipaddress import ip_address, ip_network

import pytest

from mockube.apimachinery.timestamps import format_time, parse_micro_time
from mockube.controller_manager.components import SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.settings import Config, Networks, Simulation
from mockube.controller_manager.controllers.nodeipam.controller import NODE_IPAM
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import running_manager
from tests.support.controllers.simulated import MERGE, NODES, PODS, simulated_cluster

pytestmark = pytest.mark.thorough

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


@pytest.fixture
async def cluster():
    async with simulated_cluster() as cluster:
        yield cluster


# --- nodes


async def test_nodes_are_registered_and_ready(cluster):
    names = [node["metadata"]["name"] for node in (await cluster.get(NODES))["items"]]
    assert names == ["node-1", "node-2"]
    node = await cluster.get(f"{NODES}/node-1")
    assert node["status"]["capacity"] == {
        "cpu": "32",
        "ephemeral-storage": "1Ti",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "256Gi",
        "pods": "1100",
    }
    info = node["status"]["nodeInfo"]
    assert [len(info[name]) for name in ("machineID", "systemUUID", "bootID")] == [32, 36, 36]
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    assert node["status"]["addresses"] == [
        {"type": "InternalIP", "address": "172.18.0.1"},
        {"type": "Hostname", "address": "node-1"},
    ]
    assert [(c["type"], c["status"], c["reason"], c["message"]) for c in node["status"]["conditions"]] == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
    assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node-1"
    csi_node = await cluster.get(f"{CSI_NODES}/node-1")
    assert csi_node["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


async def test_node_of_another_program_gets_node_info(cluster):
    """As Karpenter's, which has labels and the annotation of a simulated node, and what its program knows of the machine."""
    own = (await cluster.get(f"{NODES}/node-1"))["status"]["nodeInfo"]
    labels = {"kubernetes.io/arch": "arm64", "kubernetes.io/os": "windows"}
    metadata = {"name": "other", "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    texts = [name for name, value in own.items() if isinstance(value, str)]
    present = dict.fromkeys(texts, "") | {"osImage": "Bottlerocket"}
    await cluster.server.post(NODES, {"metadata": metadata, "status": {"nodeInfo": present}})
    await cluster.manager.settle()
    info = (await cluster.get(f"{NODES}/other"))["status"]["nodeInfo"]
    described = {"architecture": "arm64", "operatingSystem": "windows", "osImage": "Bottlerocket"}
    ids = ("machineID", "systemUUID", "bootID")
    assert {name: value for name, value in info.items() if name not in ids} == {
        name: value for name, value in (own | described).items() if name not in ids
    }
    assert [len(info[name]) for name in ids] == [32, 36, 36]
    assert all(info[name] != own[name] for name in ids)


async def test_node_leases_are_renewed_every_ten_seconds(cluster):
    for _ in range(3):
        lease = await cluster.get(f"{LEASES}/node-2")
        assert parse_micro_time(lease["spec"]["renewTime"]) == cluster.clock.now()
        assert lease["spec"]["holderIdentity"] == "node-2"
        assert lease["spec"]["leaseDurationSeconds"] == 40
        await cluster.manager.step(10)


async def test_node_status_is_refreshed_every_five_minutes(cluster):
    before = await cluster.get(f"{NODES}/node-1")
    await cluster.manager.step(299)
    assert await cluster.get(f"{NODES}/node-1") == before
    await cluster.manager.step(1)
    conditions = (await cluster.get(f"{NODES}/node-1"))["status"]["conditions"]
    assert {condition["lastHeartbeatTime"] for condition in conditions} == {format_time(cluster.clock.now())}
    assert {condition["lastTransitionTime"] for condition in conditions} == {"2030-01-01T00:00:00Z"}


async def test_foreign_changes_do_not_delay_heartbeat(cluster):
    await cluster.manager.step(200)
    await cluster.annotate(f"{NODES}/node-1", "some", "thing")
    await cluster.manager.step(100)
    condition = (await cluster.get(f"{NODES}/node-1"))["status"]["conditions"][0]
    assert condition["lastHeartbeatTime"] == format_time(cluster.clock.now())


@pytest.mark.parametrize("value", ["true", "fault"])
async def test_stopped_node_sends_no_heartbeats_and_runs_no_pods(cluster, value):
    await cluster.annotate(f"{NODES}/node-1", "mockube.dev/stop-heartbeats", value)
    pod = await cluster.run()
    await cluster.manager.step(600)
    assert pod["status"].get("podIP") is None
    lease = await cluster.get(f"{LEASES}/node-1")
    assert parse_micro_time(lease["spec"]["renewTime"]) == parse_micro_time("2030-01-01T00:00:00.000000Z")
    await cluster.annotate(f"{NODES}/node-1", "mockube.dev/stop-heartbeats", None)
    assert (await cluster.pod())["status"]["phase"] == "Running"
    lease = await cluster.get(f"{LEASES}/node-1")
    assert parse_micro_time(lease["spec"]["renewTime"]) == cluster.clock.now()


async def test_deleted_node_is_not_recreated(cluster):
    await cluster.server.delete(f"{NODES}/node-2")
    await cluster.manager.step(60)
    assert await cluster.get(f"{NODES}/node-2") is None


async def test_annotated_foreign_nodes_are_simulated(cluster):
    for name, annotations in (("fake", {"kwok.x-k8s.io/node": "fake"}), ("real", {})):
        await cluster.server.post(NODES, {"metadata": {"name": name, "annotations": annotations}})
    await cluster.manager.settle()
    fake, real = await cluster.get(f"{NODES}/fake"), await cluster.get(f"{NODES}/real")
    assert fake["status"]["addresses"][0]["address"] == "172.18.8.255"
    assert "conditions" not in real["status"]
    assert (await cluster.run("a", node="fake"))["status"]["podIP"] == "10.148.255.1"
    assert (await cluster.run("b", node="real"))["status"]["phase"] == "Pending"


# --- pods


async def test_pod_is_ready_with_one_write(cluster):
    pod = await cluster.run()
    status = pod["status"]
    assert cluster.writes("/pods/") == [("PATCH", f"{PODS}/p/status")]
    assert (status["phase"], status["qosClass"]) == ("Running", "BestEffort")
    assert (status["podIP"], status["podIPs"]) == ("10.244.1.1", [{"ip": "10.244.1.1"}])
    assert (status["hostIP"], status["hostIPs"]) == ("172.18.0.1", [{"ip": "172.18.0.1"}])
    assert [(c["type"], c["status"], c["observedGeneration"]) for c in status["conditions"]] == [
        ("PodReadyToStartContainers", "True", 1),
        ("Initialized", "True", 1),
        ("Ready", "True", 1),
        ("ContainersReady", "True", 1),
        ("PodScheduled", "True", 1),
    ]
    assert status["observedGeneration"] == 1
    await cluster.manager.step(600)
    assert len(cluster.writes("/pods/")) == 1


async def test_every_pod_has_own_address(cluster):
    pods = [await cluster.run(f"p{at}", node=f"node-{at % 2 + 1}") for at in range(6)]
    assert len({pod["status"]["podIP"] for pod in pods}) == 6
    shared = await cluster.run("host", hostNetwork=True)
    assert shared["status"]["podIP"] == "172.18.0.1"


async def test_sleeping_pod_succeeds_after_its_sleep(cluster):
    container = {"name": "c", "image": "busybox", "command": ["sleep", "30"]}
    await cluster.run(containers=[container], restartPolicy="Never")
    await cluster.manager.step(29)
    assert (await cluster.pod())["status"]["phase"] == "Running"
    await cluster.manager.step(1)
    assert (await cluster.pod())["status"]["phase"] == "Succeeded"
    assert len(cluster.writes("/pods/")) == 2


async def test_pod_crashes_and_restarts(cluster):
    await cluster.run(annotations={"crash-times": "2", "exit-after": "1s"})
    await cluster.manager.step(1)
    await cluster.manager.step(1)
    status = (await cluster.pod())["status"]["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    await cluster.manager.step(10)
    status = (await cluster.pod())["status"]["containerStatuses"][0]
    assert (status["restartCount"], "running" in status["state"]) == (2, True)


async def test_deleted_pod_is_removed_after_last_status(cluster):
    await cluster.run()
    await cluster.server.delete(f"{PODS}/p")
    await cluster.manager.settle()
    assert await cluster.pod() is None
    assert cluster.writes("/pods/")[1:] == [("PATCH", f"{PODS}/p/status"), ("DELETE", f"{PODS}/p")]


async def test_finalizer_keeps_finished_pod(cluster):
    await cluster.run()
    await cluster.server.patch(f"{PODS}/p", {"metadata": {"finalizers": ["a.b/c"]}}, **MERGE)
    await cluster.server.delete(f"{PODS}/p")
    await cluster.manager.step(60)
    pod = await cluster.pod()
    assert (pod["status"]["phase"], pod["metadata"]["deletionGracePeriodSeconds"]) == ("Succeeded", 0)
    assert len([write for write in cluster.writes("/pods/") if write[0] == "DELETE"]) == 1


async def test_pod_name_can_be_reused(cluster):
    first = await cluster.run()
    await cluster.server.delete(f"{PODS}/p")
    await cluster.manager.settle()
    second = await cluster.run()
    assert second["status"]["phase"] == "Running"
    assert second["status"]["podIP"] != first["status"]["podIP"]


async def test_pod_is_resized(cluster):
    def containers_with_cpu(cpu):
        return [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]

    beside = {"name": "a", "image": "redis"}
    await cluster.run(containers=[beside, *containers_with_cpu("1")])
    answer = await cluster.server.patch(
        f"{PODS}/p/resize",
        {"spec": {"containers": containers_with_cpu("2")}},
        kind="strategic-merge-patch+json",
    )
    assert answer.status == 200, answer.data
    await cluster.manager.settle()
    status = (await cluster.pod())["status"]
    assert status["containerStatuses"][1]["allocatedResources"] == {"cpu": "2"}
    assert status["observedGeneration"] == 2


async def test_pod_that_does_not_fit_is_rejected(cluster):
    container = {"name": "c", "image": "nginx", "ports": [{"containerPort": 80, "hostPort": 80}]}
    assert (await cluster.run("first", containers=[container]))["status"]["phase"] == "Running"
    status = (await cluster.run("second", containers=[container]))["status"]
    message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    assert (status["phase"], status["reason"]) == ("Failed", "NodePorts")
    assert status["message"] == f"Pod was rejected: {message}"
    assert not status.keys() & {"conditions", "containerStatuses", "podIP"}
    await cluster.manager.step(5)
    events = await events_of_pods(cluster)
    assert ("NodePorts", message) in [(event["reason"], event["message"]) for event in events]


async def test_restarted_manager_continues(cluster):
    container = {"name": "c", "image": "busybox", "command": ["sleep", "30"]}
    await cluster.run(containers=[container], restartPolicy="Never")
    first = await cluster.run("q")
    await cluster.manager.step(10)
    config = Config(simulation=Simulation(simulate_nodes=plain_nodes(2)))
    runnables = [SIMULATED_NODES, SIMULATED_PODS]
    async with running_manager(cluster.server, cluster.clock, runnables=runnables, config=config) as second:
        writes = [write for write in second.transport.writes if not write[1].endswith("/events")]
        assert writes == [("PATCH", f"{LEASES}/node-1"), ("PATCH", f"{LEASES}/node-2")]
        assert (await cluster.run("r"))["status"]["podIP"] != first["status"]["podIP"]
        await second.step(20)
        assert (await cluster.pod())["status"]["phase"] == "Succeeded"


async def test_pods_may_be_simulated_elsewhere():
    async with simulated_cluster(runnables=[SIMULATED_NODES]) as cluster:
        assert (await cluster.run())["status"]["phase"] == "Pending"


async def events_of_pods(cluster):
    path = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DPod"
    return (await cluster.get(path))["items"]


async def reasons(cluster):
    events = await cluster.get("/api/v1/namespaces/default/events")
    return [(event["reason"], event["source"]["component"]) for event in events["items"]]


async def test_node_events_are_recorded(cluster):
    found = await reasons(cluster)
    for reason in ("Starting", "NodeHasSufficientMemory", "NodeAllocatableEnforced", "NodeReady"):
        assert found.count((reason, "kubelet")) == len((await cluster.get("/api/v1/nodes"))["items"])


async def test_pod_events_are_recorded(cluster):
    pod = await cluster.run()
    events = await events_of_pods(cluster)
    assert [event["reason"] for event in events] == ["Pulling", "Pulled", "Created", "Started"]
    assert {event["firstTimestamp"] for event in events} == {pod["status"]["startTime"]}
    assert events[0]["source"] == {"component": "kubelet", "host": "node-1"}
    assert events[0]["reportingInstance"] == "node-1"
    assert events[0]["involvedObject"]["fieldPath"] == "spec.containers{c}"
    status = pod["status"]["containerStatuses"][0]
    assert status["imageID"].startswith("docker.io/library/nginx@sha256:")
    assert status["containerID"].startswith("mockube://")


async def test_kwok_stages_can_be_used():
    async with simulated_cluster(simulate_kubelet_details=False) as cluster:
        pod = await cluster.run()
        await cluster.manager.step(1)
        assert await reasons(cluster) == []
        assert pod["status"]["conditions"][0]["type"] == "Initialized"
        assert "containerID" not in pod["status"]["containerStatuses"][0]
        await cluster.server.delete(f"{PODS}/p")
        await cluster.manager.settle()
        assert len(cluster.writes("/pods/p/status")) == 1


# --- addresses


async def test_pod_address_is_in_pod_cidr_of_node():
    async with simulated_cluster(runnables=(SIMULATED_NODES, SIMULATED_PODS, NODE_IPAM)) as cluster:
        spec = (await cluster.get(f"{NODES}/node-2"))["spec"]
        assert spec["podCIDRs"] == [spec["podCIDR"]]
        assert ip_network(spec["podCIDR"]).prefixlen == 21
        pods = [await cluster.run(f"p{at}", node="node-2") for at in range(3)]
        addresses = {ip_address(pod["status"]["podIP"]) for pod in pods}
        assert len(addresses) == 3
        assert all(address in ip_network(spec["podCIDR"]) for address in addresses)


async def test_dual_stack_pods_have_both_addresses():
    networks = Networks(cluster_cidr=("10.244.0.0/16", "fd00:10:244::/56"))
    async with simulated_cluster(
        runnables=(SIMULATED_NODES, SIMULATED_PODS, NODE_IPAM), nodes=1, networks=networks
    ) as cluster:
        spec = (await cluster.get(f"{NODES}/node-1"))["spec"]
        assert spec["podCIDRs"] == ["10.244.0.0/24", "fd00:10:244::/64"]
        assert (await cluster.run())["status"]["podIPs"] == [{"ip": "10.244.0.2"}, {"ip": "fd00:10:244::2"}]


async def test_node_without_pod_cidr_is_not_ready():
    networks = Networks(cluster_cidr=("10.244.0.0/24",))
    async with simulated_cluster(
        runnables=(SIMULATED_NODES, SIMULATED_PODS, NODE_IPAM), networks=networks
    ) as cluster:
        nodes = (await cluster.get(NODES))["items"]
        (late,) = [node for node in nodes if "podCIDR" not in node["spec"]]
        assert next(c for c in late["status"]["conditions"] if c["type"] == "Ready")["status"] == "False"
        name = late["metadata"]["name"]
        pod = await cluster.run(node=name)
        assert pod["status"]["phase"] == "Pending"
        assert "podIP" not in pod["status"]
        assert ("CIDRNotAvailable", "cidrAllocator") in await reasons(cluster)
        (other,) = {"node-1", "node-2"} - {name}
        await cluster.server.delete(f"{NODES}/{other}")
        await cluster.manager.step(60)
        assert (await cluster.get(f"{NODES}/{name}"))["spec"]["podCIDR"] == "10.244.0.0/24"
        assert (await cluster.pod())["status"]["podIP"] == "10.244.0.2"
