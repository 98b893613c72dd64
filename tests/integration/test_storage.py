"""Claims and volumes by the manager with a real server: bound, waiting, in use, released."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import KUBE_SCHEDULER
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.controller_manager.controllers.csi.provisioner import PROVISIONER, SIMULATED_STORAGE_CLASS
from mockube.controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from mockube.controller_manager.controllers.storageprotection.controller import (
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
)
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import running_manager
from tests.support.server.apiserver import running

NAMESPACE = "/api/v1/namespaces/default"
CLAIMS = f"{NAMESPACE}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CONTROLLERS = [SERVICE_ACCOUNT, PERSISTENT_VOLUME_BINDER, CLAIM_PROTECTION, VOLUME_PROTECTION, PROVISIONER]


@pytest.fixture
async def scenario():
    clock = SteppedClock()
    async with (
        running(clock=clock) as server,
        running_manager(
            server,
            clock,
            controllers=CONTROLLERS,
            runnables=[KUBE_SCHEDULER],
            config=Config(simulation=Simulation(simulate_nodes=plain_nodes(1))),
        ) as manager,
    ):
        yield Scenario(server, manager)


class Scenario:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    async def make(self, collection, name, **fields):
        answer = await self.server.post(collection, {"metadata": {"name": name}, **fields})
        assert answer.status == 201, answer.body
        await self.manager.settle()
        return answer.body

    async def claim(self, name="data", size="2Gi", **spec):
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return await self.make(CLAIMS, name, spec={**wanted, **spec})

    async def volume(self, name="vol", size="5Gi", **spec):
        has = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "hostPath": {"path": "/tmp/x"},
        }
        return await self.make(VOLUMES, name, spec={**has, **spec})

    async def node(self, name="node-1"):
        labels = {"kubernetes.io/hostname": name}
        await self.server.post("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        await self.server.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": room}})
        await self.server.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        await self.manager.settle()

    async def pod(self, name="app", claim="data"):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
        containers = [{"name": "c", "image": "i"}]
        await self.make(f"{NAMESPACE}/pods", name, spec={"containers": containers, "volumes": volumes})

    async def delete(self, path, **options):
        answer = await self.server.delete(path, options or None)
        assert answer.status in (200, 202), answer.body
        await self.manager.settle()

    async def read(self, path):
        return (await self.server.get(path)).body

    async def phase(self, path):
        return (await self.read(path)).get("status", {}).get("phase")

    async def reasons(self):
        return [event["reason"] for event in (await self.read(f"{NAMESPACE}/events"))["items"]]


async def test_manual_volume_is_bound(scenario):
    await scenario.volume(storageClassName="manual")
    await scenario.claim(storageClassName="manual")
    claim = await scenario.read(f"{CLAIMS}/data")
    assert (claim["status"]["phase"], claim["status"]["capacity"]) == ("Bound", {"storage": "5Gi"})
    assert await scenario.phase(f"{VOLUMES}/vol") == "Bound"
    await scenario.delete(f"{CLAIMS}/data")
    assert await scenario.phase(f"{VOLUMES}/vol") == "Released"
    await scenario.delete(f"{VOLUMES}/vol")
    assert (await scenario.server.get(f"{VOLUMES}/vol")).status == 404


async def test_waiting_claim_is_bound_to_later_volume(scenario):
    await scenario.claim(storageClassName="")
    assert await scenario.phase(f"{CLAIMS}/data") == "Pending"
    await scenario.volume()
    assert await scenario.phase(f"{CLAIMS}/data") == "Bound"


async def test_provisioned_volume_is_deleted_with_claim(scenario):
    await scenario.make(CLASSES, "fast", provisioner="rancher.io/local-path")
    await scenario.claim(storageClassName="fast")
    assert await scenario.phase(f"{CLAIMS}/data") == "Bound"
    await scenario.delete(f"{CLAIMS}/data")
    assert (await scenario.read(VOLUMES))["items"] == []


async def test_claim_waits_for_scheduled_pod(scenario):
    await scenario.make(
        CLASSES, "late", provisioner="ebs.csi.aws.com", volumeBindingMode="WaitForFirstConsumer"
    )
    await scenario.claim(storageClassName="late")
    assert await scenario.reasons() == ["WaitForFirstConsumer"]
    await scenario.pod()
    assert await scenario.phase(f"{CLAIMS}/data") == "Pending"
    await scenario.node()
    await scenario.manager.step(60)
    claim = await scenario.read(f"{CLAIMS}/data")
    assert claim["status"]["phase"] == "Bound"
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "node-1"
    assert (await scenario.read(f"{NAMESPACE}/pods/app"))["spec"]["nodeName"] == "node-1"
    assert {"WaitForPodScheduled", "ExternalProvisioning", "ProvisioningSucceeded"} < {
        *await scenario.reasons()
    }


async def test_manual_volume_waits_for_scheduled_pod(scenario):
    await scenario.make(
        CLASSES, "local", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer"
    )
    await scenario.volume(storageClassName="local")
    await scenario.claim(storageClassName="local")
    assert (await scenario.phase(f"{CLAIMS}/data"), await scenario.phase(f"{VOLUMES}/vol")) == (
        "Pending",
        "Available",
    )
    await scenario.node()
    await scenario.pod()
    await scenario.manager.step(10)
    assert (await scenario.phase(f"{CLAIMS}/data"), await scenario.phase(f"{VOLUMES}/vol")) == (
        "Bound",
        "Bound",
    )


async def test_claim_in_use_is_deleted_after_its_pod(scenario):
    await scenario.volume()
    await scenario.claim(storageClassName="")
    await scenario.node()
    await scenario.pod()
    await scenario.delete(f"{CLAIMS}/data")
    assert (await scenario.read(f"{CLAIMS}/data"))["metadata"]["deletionTimestamp"]
    await scenario.delete(f"{NAMESPACE}/pods/app", gracePeriodSeconds=0)
    assert (await scenario.server.get(f"{CLAIMS}/data")).status == 404


async def test_bound_volume_is_not_deleted(scenario):
    await scenario.volume()
    await scenario.claim(storageClassName="")
    await scenario.delete(f"{VOLUMES}/vol")
    assert await scenario.phase(f"{VOLUMES}/vol") == "Bound"
    await scenario.delete(f"{CLAIMS}/data")
    assert (await scenario.server.get(f"{VOLUMES}/vol")).status == 404


@pytest.mark.parametrize("default", [None, "mine"], ids=["the only class", "beside another default"])
async def test_storage_class_is_offered_by_name(default):
    clock = SteppedClock()
    async with running(clock=clock) as server:
        if default:
            marked = {"storageclass.kubernetes.io/is-default-class": "true"}
            body = {"metadata": {"name": default, "annotations": marked}, "provisioner": "x"}
            await server.post(CLASSES, body)
        async with running_manager(
            server, clock, controllers=CONTROLLERS, runnables=[SIMULATED_STORAGE_CLASS]
        ) as manager:
            scenario = Scenario(server, manager)
            await scenario.claim()
            assert (await scenario.read(f"{CLAIMS}/data"))["spec"]["storageClassName"] == (
                default or "standard"
            )
            offered = (await scenario.read(f"{CLASSES}/standard"))["volumeBindingMode"]
            assert offered == "WaitForFirstConsumer"


async def test_pods_of_local_claim_share_node(scenario):
    local = {"provisioner": "rancher.io/local-path", "volumeBindingMode": "WaitForFirstConsumer"}
    await scenario.make(CLASSES, "local", **local)
    for name in ("node-1", "node-2", "node-3"):
        await scenario.node(name)
    await scenario.claim(storageClassName="local")
    names = [f"app-{number}" for number in range(6)]
    for name in names:
        await scenario.pod(name)
        await scenario.manager.step(10)
    pods = [await scenario.read(f"{NAMESPACE}/pods/{name}") for name in names]
    assert len({pod["spec"].get("nodeName") for pod in pods}) == 1
    assert pods[0]["spec"]["nodeName"]


async def test_unchanged_storage_causes_no_writes(scenario):
    await scenario.make(CLASSES, "fast", provisioner="rancher.io/local-path")
    await scenario.claim(storageClassName="fast")
    await scenario.volume()
    await scenario.manager.step(30)
    scenario.manager.transport.writes.clear()
    await scenario.manager.step(120)
    assert scenario.manager.transport.writes == []
