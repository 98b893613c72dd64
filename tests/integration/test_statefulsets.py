"""StatefulSets by the whole manager beside a real server: the controller, scheduler, simulated nodes, storage, garbage."""

import pytest

from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.controllers.set_stories import NAMESPACE, REVISIONS, telling
from tests.support.controllers.statefulsets import claim_template, statefulset

SETS = "/apis/apps/v1/namespaces/default/statefulsets"


@pytest.fixture
async def story():
    async with telling(STATEFUL_SET, SETS, statefulset) as story:
        yield story


async def test_stateful_set_is_created_scaled_and_updated(story):
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


async def test_update_and_rollback(story):
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


async def test_each_pod_has_own_storage(story):
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
    assert await story.messages() == {
        "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "Create Claim data-web-1 Pod web-1 in StatefulSet web success",
        "Create Pod web-0 in StatefulSet web successful",
        "Create Pod web-1 in StatefulSet web successful",
        "Delete Pod web-1 in StatefulSet web successful",
    }


async def test_unchanged_set_causes_no_writes(story):
    await story.create(replicas=2)
    await story.until(story.rolled_out)
    await story.manager.step(30)
    story.manager.transport.writes.clear()
    await story.manager.step(60)
    assert [path for _, path in story.manager.transport.writes if "/leases/" not in path] == []


async def test_rejected_pod_is_recreated(story):
    container = {"name": "c", "image": "a:1", "ports": [{"containerPort": 80, "hostPort": 80}]}
    here = {"nodeName": "node-1", "containers": [container]}
    await story.post(f"{NAMESPACE}/pods", {"metadata": {"name": "first"}, "spec": here})
    template = {"metadata": {"labels": {"app": "web"}}, "spec": here}
    await story.create(replicas=1, template=template)

    async def is_made_again():
        return story.writes(f"{NAMESPACE}/pods") > 2

    await story.until(is_made_again)
    await story.server.delete(f"{NAMESPACE}/pods/first")
    await story.until(story.rolled_out)
    assert await story.names(f"{NAMESPACE}/pods") == ["web-0"]
