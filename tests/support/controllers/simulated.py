"""Simulated nodes and pods with a real server, on a clock that the test steps."""

import contextlib

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.settings import Config, Networks, Simulation
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import running_cluster

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
MERGE = {"kind": "merge-patch+json"}


class SimulatedCluster:
    def __init__(self, server, manager, clock):
        self.server = server
        self.manager = manager
        self.clock = clock

    async def get(self, path):
        answer = await self.server.get(path)
        return answer.body if answer.status == 200 else None

    async def run(self, name="p", *, node="node-1", annotations=None, **spec):
        """Create a pod that is already bound to its node, and return its state right after that."""
        metadata = {
            "name": name,
            "annotations": {f"mockube.dev/{key}": text for key, text in (annotations or {}).items()},
        }
        body = {
            "metadata": metadata,
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "nginx"}], **spec},
        }
        answer = await self.server.post(PODS, body)
        assert answer.status == 201, answer.data
        await self.manager.settle()
        return await self.pod(name)

    async def pod(self, name="p"):
        return await self.get(f"{PODS}/{name}")

    async def annotate(self, path, key, text):
        await self.server.patch(path, {"metadata": {"annotations": {key: text}}}, **MERGE)
        await self.manager.settle()

    def writes(self, part):
        return [(method, target) for method, target in self.manager.transport.writes if part in target]


@contextlib.asynccontextmanager
async def simulated_cluster(
    *, runnables=(SIMULATED_NODES, SIMULATED_PODS), nodes=2, networks=None, **options
):
    clock = SteppedClock()
    simulation = Simulation(simulate_nodes=plain_nodes(nodes), **options)
    config = Config(simulation=simulation, networks=networks or Networks())
    used = {"runnables": runnables, "config": config, "namespaces": ["kube-node-lease"]}
    async with running_cluster(clock=clock, **used) as (server, manager):
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield SimulatedCluster(server, manager, clock)
