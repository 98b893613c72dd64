"""Deployments by the whole manager and a real server: controllers, scheduler, simulated nodes, garbage collector."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import KUBE_SCHEDULER, SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.garbagecollector.collector import GARBAGE_COLLECTOR
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET, REPLICATION_CONTROLLER
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.deployments import (
    RECREATE,
    deployment,
    image_of,
    replicaset,
    rolling,
    template,
)
from tests.support.controllers.running_manager import running_manager
from tests.support.server.apiserver import running

NAMESPACE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
WEB = f"{APPS}/deployments/web"
CONTROLLERS = [SERVICE_ACCOUNT, DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER]
RUNNABLES = [GARBAGE_COLLECTOR, KUBE_SCHEDULER, SIMULATED_NODES, SIMULATED_PODS]


@pytest.fixture
async def scenario():
    clock = SteppedClock()
    config = Config(simulation=Simulation(simulate_nodes=plain_nodes(3)))
    async with (
        running(clock=clock) as server,
        running_manager(
            server, clock, controllers=CONTROLLERS, runnables=RUNNABLES, config=config
        ) as manager,
    ):
        scenario = Scenario(server, manager)
        await scenario.open_nodes()
        yield scenario


class Scenario:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    async def open_nodes(self):
        """Nodes begin with a taint for not being ready; the node lifecycle controller does not run here."""
        await self.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        for node in await self.items("/api/v1/nodes"):
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            assert (await self.server.patch(path, {"spec": {"taints": None}})).status == 200

    async def deploy(self, **spec):
        await self.post(f"{APPS}/deployments", deployment(**spec))
        await self.until(self.is_rolled_out)

    async def post(self, path, body):
        answer = await self.server.post(path, body)
        assert answer.status == 201, answer.body

    async def patch(self, **spec):
        answer = await self.server.patch(WEB, {"spec": spec})
        assert answer.status == 200, answer.body

    async def release(self, image):
        await self.patch(template=template(image))
        await self.until(self.is_rolled_out)

    async def read(self, path):
        answer = await self.server.get(path)
        assert answer.status == 200, answer.body
        return answer.body

    async def items(self, path):
        return (await self.read(path))["items"]

    async def pods(self):
        return [
            pod for pod in await self.items(f"{NAMESPACE}/pods") if "deletionTimestamp" not in pod["metadata"]
        ]

    async def sizes(self):
        items = await self.items(f"{APPS}/replicasets")
        return {image_of(it["spec"]["template"]): it["spec"]["replicas"] for it in items}

    async def conditions(self):
        return {it["type"]: it["reason"] for it in (await self.read(WEB))["status"]["conditions"]}

    async def events(self, kind):
        items = await self.items(f"{NAMESPACE}/events")
        return [it for it in items if it["involvedObject"]["kind"] == kind]

    async def until(self, condition):
        """Let time pass until the condition holds and the cluster is idle."""
        for _ in range(120):
            await self.manager.settle()
            if await condition():
                return
            await self.manager.step(1)
        raise AssertionError((await self.read(WEB)).get("status"))

    async def is_rolled_out(self):
        found = await self.read(WEB)
        status, wanted = found.get("status") or {}, found["spec"]["replicas"]
        counts = {status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")}
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return seen and counts == {wanted} and status.get("terminatingReplicas") == 0


async def test_rolling_update_replaces_pods(scenario):
    await scenario.deploy()
    await scenario.release("a:2")
    assert await scenario.sizes() == {"a:1": 0, "a:2": 3}
    assert {image_of(pod) for pod in await scenario.pods()} == {"a:2"}
    assert await scenario.conditions() == {
        "Available": "MinimumReplicasAvailable",
        "Progressing": "NewReplicaSetAvailable",
    }
    found = await scenario.read(WEB)
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


async def test_first_rollout_records_events_and_status(scenario):
    await scenario.deploy()
    (made,) = await scenario.items(f"{APPS}/replicasets")
    (scaled,) = await scenario.events("Deployment")
    assert (scaled["reason"], scaled["type"]) == ("ScalingReplicaSet", "Normal")
    assert scaled["message"] == f"Scaled up replica set {made['metadata']['name']} from 0 to 3"
    assert scaled["source"]["component"] == "deployment-controller"
    created = await scenario.events("ReplicaSet")
    names = {pod["metadata"]["name"] for pod in await scenario.pods()}
    assert {it["message"] for it in created} == {f"Created pod: {name}" for name in names}
    assert {it["source"]["component"] for it in created} == {"replicaset-controller"}


@pytest.mark.parametrize("strategy", [rolling(1, 0), rolling(0, 1), rolling("100%", "50%"), RECREATE])
async def test_rollout_strategies(scenario, strategy):
    await scenario.deploy(replicas=4, strategy=strategy)
    await scenario.release("a:2")
    await scenario.release("a:1")
    assert await scenario.sizes() == {"a:1": 4, "a:2": 0}


async def test_scaling_at_rest_and_while_paused(scenario):
    await scenario.deploy(replicas=2)
    await scenario.patch(replicas=5)
    await scenario.until(scenario.is_rolled_out)
    assert len(await scenario.pods()) == 5
    await scenario.patch(paused=True, replicas=1, template=template("a:2"))
    await scenario.manager.step(30)
    assert await scenario.sizes() == {"a:1": 1}
    assert (await scenario.conditions())["Progressing"] == "DeploymentPaused"
    await scenario.patch(paused=False)
    await scenario.until(scenario.is_rolled_out)
    assert await scenario.sizes() == {"a:1": 0, "a:2": 1}


async def test_stalled_rollout_exceeds_deadline_and_can_be_rolled_back(scenario):
    await scenario.deploy()
    spec = {**template("a:2")["spec"], "nodeSelector": {"none": "such"}}
    await scenario.patch(progressDeadlineSeconds=4, template={**template("a:2"), "spec": spec})
    await scenario.manager.step(30)
    assert await scenario.conditions() == {
        "Available": "MinimumReplicasAvailable",
        "Progressing": "ProgressDeadlineExceeded",
    }
    assert (await scenario.read(WEB))["status"]["updatedReplicas"] == 1
    answer = await scenario.server.patch(
        WEB, [{"op": "replace", "path": "/spec/template", "value": template()}], kind="json-patch+json"
    )
    assert answer.status == 200, answer.body
    await scenario.until(scenario.is_rolled_out)
    assert (await scenario.conditions())["Progressing"] == "NewReplicaSetAvailable"


async def test_min_ready_seconds_delay_availability(scenario):
    await scenario.deploy(replicas=2, minReadySeconds=20)
    await scenario.patch(template=template("a:2"))
    await scenario.manager.step(10)
    assert (await scenario.sizes())["a:1"] > 0
    await scenario.until(scenario.is_rolled_out)
    assert await scenario.sizes() == {"a:1": 0, "a:2": 2}


async def test_revision_history_is_limited(scenario):
    await scenario.deploy(replicas=1, revisionHistoryLimit=1)
    for image in ("a:2", "a:3", "a:4"):
        await scenario.release(image)
    await scenario.manager.settle()
    assert await scenario.sizes() == {"a:3": 0, "a:4": 1}


async def test_deletion_removes_sets_and_pods(scenario):
    await scenario.deploy()
    await scenario.server.delete(WEB, {"propagationPolicy": "Background"})
    await scenario.manager.step(40)
    assert await scenario.items(f"{APPS}/replicasets") == []
    assert await scenario.items(f"{NAMESPACE}/pods") == []


async def test_orphaned_sets_are_adopted_again(scenario):
    await scenario.deploy()
    before = {pod["metadata"]["uid"] for pod in await scenario.pods()}
    await scenario.server.delete(WEB, {"propagationPolicy": "Orphan"})
    await scenario.manager.step(5)
    await scenario.deploy()
    assert {pod["metadata"]["uid"] for pod in await scenario.pods()} == before
    assert await scenario.sizes() == {"a:1": 3}


async def test_replica_set_adopts_orphan_and_releases_relabelled_pod(scenario):
    stray = {"metadata": {"name": "stray", "labels": {"app": "web"}}, "spec": template()["spec"]}
    await scenario.post(f"{NAMESPACE}/pods", stray)
    await scenario.post(f"{APPS}/replicasets", replicaset(replicas=2))
    await scenario.manager.step(5)
    owner = (await scenario.read(f"{NAMESPACE}/pods/stray"))["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "web", True)
    assert len(await scenario.pods()) == 2
    patch = {"metadata": {"labels": {"app": "free"}}}
    assert (await scenario.server.patch(f"{NAMESPACE}/pods/stray", patch)).status == 200
    await scenario.manager.step(5)
    assert "ownerReferences" not in (await scenario.read(f"{NAMESPACE}/pods/stray"))["metadata"]
    assert len(await scenario.pods()) == 3


async def test_replication_controller_manages_pods(scenario):
    spec = {"replicas": 2, "template": template()}
    await scenario.post(f"{NAMESPACE}/replicationcontrollers", {"metadata": {"name": "rc"}, "spec": spec})
    await scenario.manager.step(5)
    status = (await scenario.read(f"{NAMESPACE}/replicationcontrollers/rc"))["status"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (2, 2, 2)


async def test_annotation_change_costs_two_writes(scenario):
    await scenario.deploy()
    await scenario.manager.step(5)
    scenario.manager.transport.writes.clear()
    patch = {"metadata": {"annotations": {"note": "1"}}}
    assert (await scenario.server.patch(WEB, patch)).status == 200
    await scenario.manager.settle()
    written = [target.rpartition("/")[2] for _, target in scenario.manager.transport.writes]
    assert len(written) == 2
    assert written[1] == "status"


async def test_unchanged_deployment_causes_no_writes(scenario):
    await scenario.deploy()
    await scenario.manager.step(5)
    scenario.manager.transport.writes.clear()
    await scenario.manager.step(30)
    kinds = {target for _, target in scenario.manager.transport.writes}
    assert not [target for target in kinds if "/deployments" in target or "/replicasets" in target]
