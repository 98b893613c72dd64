"""StatefulSets by the whole manager beside a real server: the controller, scheduler, simulated nodes, storage, garbage."""

import pytest

from apimachinery.clock import SteppedClock
from controller_manager.config.command_line import Config
from controller_manager.config.settings import Simulation
from controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from controller_manager.controllers.statefulset.controller import STATEFUL_SET
from controller_manager.controllers.storageprotection.claims import CLAIM_PROTECTION
from controller_manager.controllers.storageprotection.volumes import VOLUME_PROTECTION
from controller_manager.engines.garbage.collector import GARBAGE_COLLECTOR
from controller_manager.simulation.nodes import SIMULATED_NODES
from controller_manager.simulation.pods import SIMULATED_PODS
from controller_manager.simulation.scheduler.engine import SCHEDULER_ENGINE
from controller_manager.simulation.storage.provisioner import PROVISIONER
from tests.support.apiserver import running
from tests.support.running_manager import running_manager
from tests.support.statefulsets import claim_template, statefulset

NAMESPACE = "/api/v1/namespaces/default"
SETS = "/apis/apps/v1/namespaces/default/statefulsets"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
CONTROLLERS = [
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    PERSISTENT_VOLUME_BINDER,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    PROVISIONER,
]
ENGINES = [GARBAGE_COLLECTOR, SCHEDULER_ENGINE, SIMULATED_NODES, SIMULATED_PODS]


@pytest.fixture
async def story():
    clock = SteppedClock()
    config = Config(simulation=Simulation(simulate_nodes=3))
    async with (
        running(clock=clock) as server,
        running_manager(server, clock, controllers=CONTROLLERS, engines=ENGINES, config=config) as manager,
    ):
        story = Story(server, manager)
        await story.open_nodes()
        yield story


class Story:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    async def open_nodes(self):
        """Nodes begin with a taint that says that they are not ready; the node lifecycle controller is not here."""
        await self.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        for name in await self.names("/api/v1/nodes"):
            answer = await self.server.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
            assert answer.status == 200, answer.body

    async def create(self, **spec):
        await self.post(SETS, statefulset(**spec))

    async def post(self, path, body):
        answer = await self.server.post(path, body)
        assert answer.status == 201, answer.body

    async def patch(self, spec):
        answer = await self.server.patch(f"{SETS}/web", {"spec": spec})
        assert answer.status == 200, answer.body

    async def read(self, path):
        answer = await self.server.get(path)
        assert answer.status == 200, answer.body
        return answer.body

    async def until(self, condition):
        """Time passes until it holds, and then nothing is left to do."""
        for _ in range(120):
            await self.manager.settle()
            if await condition():
                return
            await self.manager.step(1)
        raise AssertionError(await self.status())

    async def status(self):
        return (await self.read(f"{SETS}/web")).get("status") or {}

    async def rolled_out(self):
        found = await self.read(f"{SETS}/web")
        status = found.get("status") or {}
        counts = {status.get(field) for field in ("replicas", "readyReplicas", "updatedReplicas")}
        is_current = status.get("observedGeneration") == found["metadata"]["generation"]
        revisions = {status.get("currentRevision"), status.get("updateRevision")}
        return is_current and counts == {found["spec"]["replicas"]} and len(revisions) == 1

    async def names(self, path):
        return [item["metadata"]["name"] for item in (await self.read(path))["items"]]

    def writes(self, target):
        """How often something was written at exactly this target."""
        return sum(path == target for _, path in self.manager.transport.writes)


async def test_a_life(story):
    await story.create(replicas=3)
    await story.until(story.rolled_out)
    assert await story.names(f"{NAMESPACE}/pods") == ["web-0", "web-1", "web-2"]
    assert story.writes(f"{SETS}/web/status") <= 7
    story.manager.transport.writes.clear()
    await story.patch({"replicas": 1})
    await story.until(story.rolled_out)
    assert await story.names(f"{NAMESPACE}/pods") == ["web-0"]
    assert story.writes(f"{SETS}/web/status") <= 5
    await story.server.delete(f"{SETS}/web", {"propagationPolicy": "Background"})

    async def is_gone():
        return not await story.names(f"{NAMESPACE}/pods") + await story.names(REVISIONS)

    await story.until(is_gone)


async def test_an_update_and_its_rollback(story):
    await story.create(replicas=2, podManagementPolicy="Parallel")
    await story.until(story.rolled_out)
    (first,) = await story.names(REVISIONS)
    for image in ("a:2", "a:1"):
        await story.patch({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})
        await story.until(story.rolled_out)
        pods = (await story.read(f"{NAMESPACE}/pods"))["items"]
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {image}
    assert len(await story.names(REVISIONS)) == 2
    assert (await story.status())["currentRevision"] == first


async def test_each_pod_has_storage_of_its_own(story):
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"}
    await story.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    template = claim_template()
    template["spec"]["storageClassName"] = "fast"
    retention = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    await story.create(
        replicas=2, volumeClaimTemplates=[template], persistentVolumeClaimRetentionPolicy=retention
    )
    await story.until(story.rolled_out)
    claims = (await story.read(f"{NAMESPACE}/persistentvolumeclaims"))["items"]
    assert [claim["status"]["phase"] for claim in claims] == ["Bound", "Bound"]
    volumes = (await story.read("/api/v1/persistentvolumes"))["items"]
    assert {volume["status"]["phase"] for volume in volumes} == {"Bound"}
    await story.patch({"replicas": 1})

    async def is_alone():
        volumes = await story.names("/api/v1/persistentvolumes")
        return (await story.names(f"{NAMESPACE}/persistentvolumeclaims"), len(volumes)) == (["data-web-0"], 1)

    await story.until(is_alone)
    events = (await story.read(f"{NAMESPACE}/events"))["items"]
    messages = {event["message"] for event in events if event["involvedObject"]["kind"] == "StatefulSet"}
    assert messages == {
        "create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "create Claim data-web-1 Pod web-1 in StatefulSet web success",
        "create Pod web-0 in StatefulSet web successful",
        "create Pod web-1 in StatefulSet web successful",
        "delete Pod web-1 in StatefulSet web successful",
    }


async def test_nothing_is_written_once_it_is_quiet(story):
    await story.create(replicas=2)
    await story.until(story.rolled_out)
    await story.manager.step(30)
    story.manager.transport.writes.clear()
    await story.manager.step(60)
    assert [path for _, path in story.manager.transport.writes if "/leases/" not in path] == []
