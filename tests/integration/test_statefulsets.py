"""StatefulSets by the whole manager with a real server: controller, scheduler, simulated nodes, storage, garbage."""

import pytest

from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.controllers.set_scenarios import NAMESPACE, REVISIONS, running_scenario
from tests.support.controllers.statefulsets import claim_template, statefulset

SETS = "/apis/apps/v1/namespaces/default/statefulsets"


@pytest.fixture
async def scenario():
    async with running_scenario(STATEFUL_SET, SETS, statefulset) as scenario:
        yield scenario


async def test_stateful_set_is_created_scaled_and_updated(scenario):
    await scenario.create(replicas=3)
    await scenario.until(scenario.rolled_out)
    assert await scenario.names(f"{NAMESPACE}/pods") == ["web-0", "web-1", "web-2"]
    assert scenario.writes(f"{SETS}/web/status") <= 7
    scenario.manager.transport.writes.clear()
    await scenario.patch({"replicas": 1})
    await scenario.until(scenario.rolled_out)
    assert await scenario.names(f"{NAMESPACE}/pods") == ["web-0"]
    assert scenario.writes(f"{SETS}/web/status") <= 5
    await scenario.server.delete(f"{SETS}/web", {"propagationPolicy": "Background"})

    async def is_gone():
        return not await scenario.names(f"{NAMESPACE}/pods") + await scenario.names(REVISIONS)

    await scenario.until(is_gone)


async def test_update_and_rollback(scenario):
    await scenario.create(replicas=2, podManagementPolicy="Parallel")
    await scenario.until(scenario.rolled_out)
    (first,) = await scenario.names(REVISIONS)
    for image in ("a:2", "a:1"):
        await scenario.patch({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})
        await scenario.until(scenario.rolled_out)
        pods = (await scenario.read(f"{NAMESPACE}/pods"))["items"]
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {image}
    assert len(await scenario.names(REVISIONS)) == 2
    assert (await scenario.status())["currentRevision"] == first


async def test_each_pod_has_own_storage(scenario):
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"}
    await scenario.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    template = claim_template()
    template["spec"]["storageClassName"] = "fast"
    retention = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    await scenario.create(
        replicas=2, volumeClaimTemplates=[template], persistentVolumeClaimRetentionPolicy=retention
    )
    await scenario.until(scenario.rolled_out)
    claims = (await scenario.read(f"{NAMESPACE}/persistentvolumeclaims"))["items"]
    assert [claim["status"]["phase"] for claim in claims] == ["Bound", "Bound"]
    volumes = (await scenario.read("/api/v1/persistentvolumes"))["items"]
    assert {volume["status"]["phase"] for volume in volumes} == {"Bound"}
    await scenario.patch({"replicas": 1})

    async def is_alone():
        volumes = await scenario.names("/api/v1/persistentvolumes")
        return (await scenario.names(f"{NAMESPACE}/persistentvolumeclaims"), len(volumes)) == (
            ["data-web-0"],
            1,
        )

    await scenario.until(is_alone)
    assert await scenario.messages() == {
        "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "Create Claim data-web-1 Pod web-1 in StatefulSet web success",
        "Create Pod web-0 in StatefulSet web successful",
        "Create Pod web-1 in StatefulSet web successful",
        "Delete Pod web-1 in StatefulSet web successful",
    }


async def test_unchanged_set_causes_no_writes(scenario):
    await scenario.create(replicas=2)
    await scenario.until(scenario.rolled_out)
    await scenario.manager.step(30)
    scenario.manager.transport.writes.clear()
    await scenario.manager.step(60)
    assert [path for _, path in scenario.manager.transport.writes if "/leases/" not in path] == []


async def test_rejected_pod_is_recreated(scenario):
    container = {"name": "c", "image": "a:1", "ports": [{"containerPort": 80, "hostPort": 80}]}
    here = {"nodeName": "node-1", "containers": [container]}
    await scenario.post(f"{NAMESPACE}/pods", {"metadata": {"name": "first"}, "spec": here})
    template = {"metadata": {"labels": {"app": "web"}}, "spec": here}
    await scenario.create(replicas=1, template=template)

    async def is_made_again():
        return scenario.writes(f"{NAMESPACE}/pods") > 2

    await scenario.until(is_made_again)
    await scenario.server.delete(f"{NAMESPACE}/pods/first")
    await scenario.until(scenario.rolled_out)
    assert await scenario.names(f"{NAMESPACE}/pods") == ["web-0"]
