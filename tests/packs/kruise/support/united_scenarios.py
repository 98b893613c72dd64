"""UnitedDeployments' scenarios by a whole manager beside a real server that has OpenKruise's kinds."""

import contextlib

from mockube.controller_manager.components import KUBE_SCHEDULER, SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.settings import Config, Controllers, Simulation
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.garbagecollector.collector import GARBAGE_COLLECTOR
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from mockube.controller_manager.controllers.rootca.controller import ROOT_CA
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from mockube.kubelet.node_pools.flag import read_nodes
from mockube.packs.kruise.controllers.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from mockube.packs.kruise.controllers.cloneset.controller import CLONE_SET
from mockube.packs.kruise.controllers.uniteddeployment.controller import UNITED_DEPLOYMENT
from mockube.packs.kruise.controllers.uniteddeployment.subset import LABEL_SUBSET_NAME
from mockube.packs.kruise.pack import PACK
from tests.packs.kruise.support.uniteddeployments import ADAPTER, KINDS
from tests.support.controllers.running_manager import running_cluster

KRUISE = ("--packs=kruise",)
UNITED = "/apis/apps.kruise.io/v1alpha1/namespaces/default/uniteddeployments"
CONTROLLERS = [
    SERVICE_ACCOUNT,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    ADVANCED_STATEFUL_SET,
    CLONE_SET,
    UNITED_DEPLOYMENT,
]
RUNNABLES = [GARBAGE_COLLECTOR, ROOT_CA, KUBE_SCHEDULER, SIMULATED_NODES, SIMULATED_PODS]
ZONE = "topology.kubernetes.io/zone"


@contextlib.asynccontextmanager
async def united_scenario(*, zones=(), flags=KRUISE):
    pool = "".join(f"zone={zone}," for zone in zones)
    config = Config(
        simulation=Simulation(simulate_nodes=read_nodes(f"{pool}pods=1100:{max(len(zones), 1)}")),
        controllers=Controllers(packs=("kruise",)),
    )
    manager = {"controllers": CONTROLLERS, "runnables": RUNNABLES, "config": config}
    async with running_cluster(flags=flags, **manager) as (server, manager):
        scenario = Scenario(server, manager)
        await scenario.open_nodes()
        yield scenario


class Scenario:
    NAMESPACE = "/api/v1/namespaces/default"
    PODS = f"{NAMESPACE}/pods"

    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    # --- the cluster

    async def open_nodes(self):
        """Nodes begin with a taint for not being ready; the node lifecycle controller does not run here."""
        await self.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        for node in await self.items("/api/v1/nodes"):
            await self.patch_node(node, {"spec": {"taints": None}})

    async def define(self):
        """Create the definitions that `mockube crds kruise` prints; the manager discovers them later."""
        for definition in PACK.definitions():
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            answer = await self.server.post(path, definition, Content_Type="application/yaml")
            assert answer.status == 201, answer.body
            await self._wait_until_established(f"{path}/{answer.body['metadata']['name']}")
        await self.manager.step(40)

    async def _wait_until_established(self, path):
        while "True" not in [
            one["status"]
            for one in (await self.server.get(path)).body.get("status", {}).get("conditions") or ()
            if one["type"] == "Established"
        ]:
            pass

    async def patch_node(self, node, body):
        answer = await self.server.patch(f"/api/v1/nodes/{node['metadata']['name']}", body)
        assert answer.status == 200, answer.body

    async def patch_nodes(self, zone, body):
        for node in await self.items("/api/v1/nodes"):
            if node["metadata"]["labels"][ZONE] == zone:
                await self.patch_node(node, body)

    async def open_zone(self, zone):
        """Move the second node to this zone; its pods stay."""
        _, node, *_ = sorted(await self.items("/api/v1/nodes"), key=lambda item: item["metadata"]["name"])
        await self.patch_node(node, {"metadata": {"labels": {ZONE: zone}}})

    # --- user actions

    async def deploy(self, united):
        await self.post(UNITED, united)
        await self.until(self.is_rolled_out)

    async def post(self, path, body):
        answer = await self.server.post(path, body)
        assert answer.status == 201, answer.body

    async def patch(self, **spec):
        """By a merge patch, so lists and templates of one kind are replaced as a whole."""
        answer = await self.server.patch(f"{UNITED}/foo", {"spec": spec})
        assert answer.status == 200, answer.body

    async def scale(self, replicas):
        """By the subresource, as `kubectl scale` does: the shares of the subsets are not validated."""
        answer = await self.server.patch(f"{UNITED}/foo/scale", {"spec": {"replicas": replicas}})
        assert answer.status == 200, answer.body

    async def replace(self, **spec):
        operations = [
            {"op": "replace", "path": f"/spec/{field}", "value": value} for field, value in spec.items()
        ]
        answer = await self.server.patch(f"{UNITED}/foo", operations, kind="json-patch+json")
        assert answer.status == 200, answer.body

    # --- state

    async def read(self, path):
        answer = await self.server.get(path)
        assert answer.status == 200, answer.body
        return answer.body

    async def items(self, path):
        return (await self.read(path))["items"]

    async def foo(self):
        return await self.read(f"{UNITED}/foo")

    async def conditions(self):
        found = (await self.foo())["status"]["conditions"]
        return {condition["type"]: (condition["status"], condition.get("reason", "")) for condition in found}

    async def schedulable(self, name):
        found = (await self.foo())["status"]["subsetStatuses"]
        (condition,) = next(subset for subset in found if subset["name"] == name)["conditions"]
        return condition["status"], condition["reason"]

    def path_of(self, kind):
        return ADAPTER[kind].resource.path("default")

    async def workloads(self, kind):
        return await self.items(self.path_of(kind))

    def subset_of(self, tree):
        return tree["metadata"]["labels"][LABEL_SUBSET_NAME]

    async def sizes(self):
        found = [workload for kind in KINDS for workload in await self.workloads(kind)]
        return {self.subset_of(workload): workload["spec"]["replicas"] for workload in found}

    async def pods(self):
        return [pod for pod in await self.items(self.PODS) if "deletionTimestamp" not in pod["metadata"]]

    async def images(self):
        return await self._by_subset(lambda pod: pod["spec"]["containers"][0]["image"])

    async def zones(self):
        nodes = await self.items("/api/v1/nodes")
        zone_of = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in nodes}
        return await self._by_subset(lambda pod: zone_of[pod["spec"]["nodeName"]])

    async def _by_subset(self, value_of):
        found = {}
        for pod in await self.pods():
            found.setdefault(self.subset_of(pod), []).append(value_of(pod))
        return {name: sorted(values) for name, values in found.items()}

    async def revisions(self):
        """The numbers of its own, by name."""
        items = await self.items("/apis/apps/v1/namespaces/default/controllerrevisions")
        own = [
            revision
            for revision in items
            if revision["metadata"]["ownerReferences"][0]["kind"] == "UnitedDeployment"
        ]
        return {revision["metadata"]["name"]: revision["revision"] for revision in own}

    async def messages(self):
        items = await self.items(f"{self.NAMESPACE}/events")
        return [
            (event["reason"], event["message"])
            for event in items
            if event["involvedObject"]["kind"] == "UnitedDeployment"
        ]

    # --- time

    async def until(self, condition):
        """Let time pass until the condition holds and the cluster is idle."""
        for _ in range(120):
            await self.manager.settle()
            if await condition():
                return
            await self.manager.step(1)
        raise AssertionError((await self.foo()).get("status"))

    async def is_rolled_out(self):
        found = await self.foo()
        status, replicas = found.get("status") or {}, found["spec"]["replicas"]
        fields = ("replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas")
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        is_current = status.get("currentRevision") == (status.get("updateStatus") or {}).get(
            "updatedRevision"
        )
        return seen and is_current and {status.get(field, 0) for field in fields} == {replicas}

    async def is_at_rest(self, seconds=30):
        """Wait until only nodes and leases are written."""
        await self.manager.step(5)
        self.manager.transport.writes.clear()
        await self.manager.step(seconds)
        others = [
            write
            for write in self.manager.transport.writes
            if "/leases" not in write[1] and "/nodes" not in write[1]
        ]
        assert others == []
        return True
