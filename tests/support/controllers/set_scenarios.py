"""Scenarios of sets and their pods through a real server, with simulated nodes, step by step."""

from contextlib import asynccontextmanager

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import KUBE_SCHEDULER, SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.controller_manager.controllers.csi.provisioner import PROVISIONER
from mockube.controller_manager.controllers.garbagecollector.collector import GARBAGE_COLLECTOR
from mockube.controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from mockube.controller_manager.controllers.rootca.controller import ROOT_CA
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from mockube.controller_manager.controllers.storageprotection.controller import (
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
)
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import running_cluster

NAMESPACE = "/api/v1/namespaces/default"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
OTHERS = [
    SERVICE_ACCOUNT,
    PERSISTENT_VOLUME_BINDER,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    PROVISIONER,
]
RUNNABLES = [GARBAGE_COLLECTOR, ROOT_CA, KUBE_SCHEDULER, SIMULATED_NODES, SIMULATED_PODS]


@asynccontextmanager
async def running_scenario(controller, sets, make, *, flags=(), details=False, scenario_class=None):
    """A scenario about the sets at one path; `make` is called with the fields of a spec. `scenario_class` is a subclass of `Scenario`."""
    clock = SteppedClock()
    simulation = Simulation(simulate_nodes=plain_nodes(3), simulate_kubelet_details=details)
    manager = {
        "controllers": [controller, *OTHERS],
        "runnables": RUNNABLES,
        "config": Config(simulation=simulation),
    }
    async with running_cluster(clock=clock, flags=flags, **manager) as (server, manager):
        scenario = (scenario_class or Scenario)(server, manager, sets, make)
        await scenario.open_nodes()
        yield scenario


class Scenario:
    def __init__(self, server, manager, sets, make):
        self.server = server
        self.manager = manager
        self.sets = sets
        self.make = make

    async def open_nodes(self):
        """Nodes begin with a taint for not being ready; the node lifecycle controller does not run here."""
        await self.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        for name in await self.names("/api/v1/nodes"):
            answer = await self.server.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
            assert answer.status == 200, answer.body

    async def create(self, **spec):
        await self.post(self.sets, self.make(**spec))

    async def post(self, path, body):
        answer = await self.server.post(path, body)
        assert answer.status == 201, answer.body

    async def patch(self, spec):
        answer = await self.server.patch(f"{self.sets}/web", {"spec": spec})
        assert answer.status == 200, answer.body

    async def read(self, path):
        answer = await self.server.get(path)
        assert answer.status == 200, answer.body
        return answer.body

    async def until(self, condition, *, always=None):
        """Let time pass until the condition holds and the cluster is idle. A condition that does not hold raises."""
        for _ in range(120):
            await self.manager.settle()
            if always is not None:
                await always()
            if await condition():
                return
            await self.manager.step(1)
        raise AssertionError(await self.status())

    async def status(self):
        return (await self.read(f"{self.sets}/web")).get("status") or {}

    async def rolled_out(self):
        found = await self.read(f"{self.sets}/web")
        status = found.get("status") or {}
        counts = {status.get(field) for field in ("replicas", "readyReplicas", "updatedReplicas")}
        is_current = status.get("observedGeneration") == found["metadata"]["generation"]
        revisions = {status.get("currentRevision"), status.get("updateRevision")}
        return is_current and counts == {found["spec"]["replicas"]} and len(revisions) == 1

    async def names(self, path):
        return [item["metadata"]["name"] for item in (await self.read(path))["items"]]

    async def pods(self):
        return {pod["metadata"]["name"]: pod for pod in (await self.read(f"{NAMESPACE}/pods"))["items"]}

    async def messages(self):
        """Return the events of the set."""
        events = (await self.read(f"{NAMESPACE}/events"))["items"]
        return {event["message"] for event in events if event["involvedObject"]["kind"] == "StatefulSet"}

    def writes(self, target):
        """Return the number of writes at exactly this target."""
        return sum(path == target for _, path in self.manager.transport.writes)
