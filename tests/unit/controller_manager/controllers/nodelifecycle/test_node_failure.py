"""A node that stops reporting: its conditions, its taints, its pods, and its recovery."""

import contextlib

import pytest

from mockube.apimachinery.schema.minors import NEWEST
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.features import Features
from mockube.controller_manager.config.settings import Config, Controllers, Simulation
from mockube.controller_manager.controllers.nodelifecycle.controller import NODE_LIFECYCLE
from mockube.controller_manager.controllers.podgc.controller import POD_GARBAGE_COLLECTOR
from mockube.controller_manager.controllers.tainteviction.controller import TAINT_EVICTION
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.disturbances import HoldEvents
from tests.support.controllers.running_manager import IDLE_ITERATIONS, running_manager
from tests.support.event_loop import yield_to_loop
from tests.support.metric_samples import sample_value
from tests.support.server.apiserver import running

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"
STOP = "mockube.dev/stop-heartbeats"
RUNNABLES = (SIMULATED_NODES, SIMULATED_PODS, NODE_LIFECYCLE, TAINT_EVICTION, POD_GARBAGE_COLLECTOR)


class NodeFailureCluster:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    async def node(self, name="node-1"):
        return (await self.server.get(f"{NODES}/{name}")).body

    async def pod(self, name="p"):
        answer = await self.server.get(f"{PODS}/{name}")
        return answer.body if answer.status == 200 else None

    async def run(self, name="p", node="node-1", **spec):
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "nginx"}], **spec}
        answer = await self.server.post(PODS, {"metadata": {"name": name}, "spec": spec})
        assert answer.status == 201, answer.data
        await self.manager.settle()

    async def stop_heartbeats(self, *names):
        await self._annotate(names, "true")

    async def resume_heartbeats(self, *names):
        await self._annotate(names, None)

    async def _annotate(self, names, text):
        for name in names:
            await self.server.patch(f"{NODES}/{name}", {"metadata": {"annotations": {STOP: text}}})
        await self.manager.settle()

    async def taints(self, name="node-1"):
        taints = (await self.node(name))["spec"].get("taints") or []
        return sorted((taint["key"].rpartition("/")[2], taint["effect"]) for taint in taints)

    async def events_of(self, kind):
        events = (await self.server.get(EVENTS)).body["items"]
        return [(e["reason"], e["message"]) for e in events if e["involvedObject"]["kind"] == kind]


@contextlib.asynccontextmanager
async def cluster_of(nodes=3, *, minor=NEWEST, disturbance=None, **options):
    clock = SteppedClock()
    config = Config(
        simulation=Simulation(simulate_nodes=plain_nodes(nodes)),
        controllers=Controllers(**options),
        features=Features(kubernetes_version=minor),
    )
    manager_options = {"runnables": RUNNABLES, "config": config, "disturbance": disturbance}
    async with running(f"--kubernetes-version={minor}", clock=clock) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        async with running_manager(server, clock, **manager_options) as manager:
            await manager.step(5)
            yield NodeFailureCluster(server, manager)


@pytest.fixture
async def cluster():
    async with cluster_of() as cluster:
        yield cluster


def condition(obj, name):
    return next(one for one in obj["status"]["conditions"] if one["type"] == name)


async def test_node_events_are_recorded(cluster):
    assert (
        "RegisteredNode",
        "Node node-2 event: Registered Node node-2 in Controller",
    ) in await cluster.events_of("Node")
    await cluster.server.delete(f"{NODES}/node-2")
    await cluster.manager.step(5)
    assert (
        "RemovingNode",
        "Node node-2 event: Removing Node node-2 from Controller",
    ) in await cluster.events_of("Node")


@pytest.mark.thorough
async def test_healthy_nodes_have_no_taints(cluster):
    await cluster.manager.step(600)
    assert await cluster.taints() == []
    assert condition(await cluster.node(), "Ready")["status"] == "True"


async def test_node_without_heartbeats_becomes_unknown_and_its_pods_not_ready(cluster):
    await cluster.run()
    await cluster.stop_heartbeats("node-1")
    await cluster.manager.step(45)
    assert condition(await cluster.node(), "Ready")["status"] == "True"
    await cluster.manager.step(15)
    ready = condition(await cluster.node(), "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert condition(await cluster.pod(), "Ready")["status"] == "False"
    assert ("NodeNotReady", "Node node-1 status is now: NodeNotReady") in await cluster.events_of("Node")
    assert ("NodeNotReady", "Node is not ready") in await cluster.events_of("Pod")
    await cluster.manager.step(5)
    assert await cluster.taints() == [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]


@pytest.mark.thorough
@pytest.mark.parametrize(("minor", "status"), [("1.37", "True"), ("1.36", "Unknown")])
async def test_lease_is_read_before_node_becomes_unknown(minor, status):
    events = HoldEvents("leases")
    async with cluster_of(1, minor=minor, disturbance=events) as cluster:
        await cluster.stop_heartbeats("node-1")
        await cluster.manager.step(45)
        events.hold()
        await cluster.server.patch(LEASE, {"spec": {"renewTime": "2030-01-01T01:00:00.000000Z"}})
        await pass_time_without_events(cluster, 20)
        assert condition(await cluster.node(), "Ready")["status"] == status
        events.release()
        await cluster.manager.step(20)
        assert condition(await cluster.node(), "Ready")["status"] == status
        await cluster.manager.step(60)
        assert condition(await cluster.node(), "Ready")["status"] == "Unknown"


async def pass_time_without_events(cluster, seconds):
    """Let time pass while the manager does not see all changes, so that it does not become idle."""
    for _ in range(seconds):
        cluster.manager.clock.advance(1)
        for _ in range(IDLE_ITERATIONS):
            await yield_to_loop()


@pytest.mark.thorough
async def test_pods_are_evicted_from_node_without_heartbeats_after_five_minutes(cluster):
    await cluster.run()
    await cluster.stop_heartbeats("node-1")
    await cluster.manager.step(65)
    await cluster.manager.step(290)
    assert "deletionTimestamp" not in (await cluster.pod())["metadata"]
    await cluster.manager.step(20)
    pod = await cluster.pod()
    assert pod["metadata"]["deletionTimestamp"]
    target = condition(pod, "DisruptionTarget")
    assert (target["reason"], target["message"]) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    assert target["observedGeneration"] == 1
    assert pod["status"]["conditions"][-1] == target
    assert ("TaintManagerEviction", "Marking for deletion Pod default/p") in await cluster.events_of("Pod")


@pytest.mark.thorough
async def test_returning_node_keeps_its_pods(cluster):
    await cluster.run()
    await cluster.stop_heartbeats("node-1")
    await cluster.manager.step(120)
    await cluster.resume_heartbeats("node-1")
    await cluster.manager.step(10)
    assert await cluster.taints() == []
    assert condition(await cluster.node(), "Ready")["status"] == "True"
    pod = await cluster.pod()
    assert condition(pod, "Ready")["status"] == "True"
    assert ("TaintManagerEviction", "Cancelling deletion of Pod default/p") in await cluster.events_of("Pod")
    await cluster.manager.step(600)
    assert (await cluster.pod())["metadata"]["uid"] == pod["metadata"]["uid"]


@pytest.mark.thorough
async def test_full_disruption_evicts_nothing(cluster):
    await cluster.run()
    await cluster.stop_heartbeats("node-1", "node-2", "node-3")
    await cluster.manager.step(600)
    assert await cluster.taints() == [("unreachable", "NoSchedule")]
    assert "deletionTimestamp" not in (await cluster.pod())["metadata"]


@pytest.mark.thorough
async def test_node_evictions_are_rate_limited():
    async with cluster_of(nodes=5) as cluster:
        await cluster.stop_heartbeats("node-1", "node-2")
        await cluster.manager.step(65)
        given_up = [("unreachable", "NoExecute") in await cluster.taints(f"node-{at}") for at in (1, 2)]
        assert given_up == [True, False]
        await cluster.manager.step(10)
        assert ("unreachable", "NoExecute") in await cluster.taints("node-2")


async def test_only_the_silent_node_is_tainted_after_a_full_disruption(cluster):
    names = "node-1", "node-2", "node-3"
    await cluster.stop_heartbeats(*names)
    await cluster.manager.step(100)
    await cluster.resume_heartbeats(*names[:2])
    await cluster.manager.step(20)
    assert [await cluster.taints(name) for name in names[:2]] == [[], []]
    assert ("unreachable", "NoExecute") in await cluster.taints("node-3")


@pytest.mark.thorough
async def test_round_of_the_monitor_examines_nodes_with_heartbeats_only(cluster):
    def examined():
        return sample_value(
            cluster.manager.metrics.registry, "node_collector_update_node_health_duration_seconds_count"
        )

    before = examined()
    await cluster.manager.step(60)
    # Three nodes renew their Leases every ten seconds, and rounds are twice as frequent.
    assert 15 <= examined() - before <= 24


@pytest.mark.thorough
async def test_cordoned_node_is_tainted(cluster):
    await cluster.server.patch(f"{NODES}/node-1", {"spec": {"unschedulable": True}})
    await cluster.manager.settle()
    assert await cluster.taints() == [("unschedulable", "NoSchedule")]
    await cluster.server.patch(f"{NODES}/node-1", {"spec": {"unschedulable": None}})
    await cluster.manager.settle()
    assert await cluster.taints() == []


@pytest.mark.thorough
async def test_no_execute_taint_evicts_pods_at_once(cluster):
    await cluster.run("stays", tolerations=[{"operator": "Exists"}])
    await cluster.run("goes")
    await cluster.server.patch(f"{NODES}/node-1", {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}})
    await cluster.manager.settle()
    assert await cluster.pod("stays")
    assert await cluster.pod("goes") is None


# --- pods that only the pod garbage collector deletes


async def test_pods_of_deleted_node_are_collected(cluster):
    await cluster.run()
    await cluster.server.delete(f"{NODES}/node-1")
    await cluster.manager.step(39)
    assert await cluster.pod()
    await cluster.manager.step(41)
    assert await cluster.pod() is None


@pytest.mark.thorough
async def test_finished_pods_beyond_threshold_are_collected():
    async with cluster_of(terminated_pod_gc_threshold=1) as cluster:
        for name in ("a", "b"):
            containers = [{"name": "c", "image": "busybox", "command": ["true"]}]
            await cluster.run(name, containers=containers, restartPolicy="Never")
        await cluster.manager.step(20)
        assert [await cluster.pod(name) is None for name in ("a", "b")] == [True, False]


@pytest.mark.thorough
async def test_terminating_unscheduled_pods_are_deleted(cluster):
    await cluster.run(node="")
    await cluster.server.patch(f"{PODS}/p", {"metadata": {"finalizers": ["a.b/c"]}})
    await cluster.server.delete(f"{PODS}/p")
    await cluster.manager.step(20)
    assert (await cluster.pod())["status"]["phase"] == "Failed"
