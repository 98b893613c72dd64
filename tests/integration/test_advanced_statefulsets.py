"""Advanced StatefulSets through a real server, with pods that a simulated kubelet runs."""

import pytest

from mockube.apiserver.http.settings import Settings
from mockube.controller_manager.controllers.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from tests.support.controllers.advancedsets import in_place, rolling, template
from tests.support.controllers.set_stories import NAMESPACE, REVISIONS, telling
from tests.support.controllers.statefulsets import claim_template, statefulset

SETS = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets"
KRUISE = Settings(packs=("kruise",))


@pytest.fixture
async def story():
    async with telling(ADVANCED_STATEFUL_SET, SETS, statefulset, settings=KRUISE) as story:
        yield story


def images(pods):
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in pods.items()}


async def test_advanced_stateful_set_is_created_scaled_and_updated(story):
    await story.create(replicas=3)
    await story.until(story.rolled_out)
    assert sorted(await story.pods()) == ["web-0", "web-1", "web-2"]
    assert story.writes(f"{SETS}/web/status") <= 7
    await story.patch({"replicas": 2, "reserveOrdinals": [0]})
    await story.until(story.rolled_out)
    assert sorted(await story.pods()) == ["web-1", "web-2"]
    await story.server.delete(f"{SETS}/web", {"propagationPolicy": "Background"})

    async def is_gone():
        return not await story.names(f"{NAMESPACE}/pods") + await story.names(REVISIONS)

    await story.until(is_gone)


async def test_pods_are_updated_in_place(story):
    strategy = in_place(maxUnavailable="50%")
    await story.create(
        replicas=4, podManagementPolicy="Parallel", template=template(), updateStrategy=strategy
    )
    await story.until(story.rolled_out)
    before = await story.pods()
    await story.patch({"template": template("a:2")})
    await story.until(story.rolled_out)
    after = await story.pods()
    assert images(after) == dict.fromkeys(before, "a:2")
    for name, pod in after.items():
        assert pod["metadata"]["uid"] == before[name]["metadata"]["uid"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    revision = (await story.status())["updateRevision"]
    assert f"successfully update pod web-3 in-place(revision {revision})" in await story.messages()


async def test_unsupported_in_place_change_recreates_pods(story):
    await story.create(replicas=2, template=template(), updateStrategy=in_place())
    await story.until(story.rolled_out)
    before = await story.pods()
    changed = template()
    changed["spec"]["containers"][0]["command"] = ["other"]
    await story.patch({"template": changed})
    await story.until(story.rolled_out)
    after = await story.pods()
    assert all(after[name]["metadata"]["uid"] != pod["metadata"]["uid"] for name, pod in before.items())


async def test_canary_by_partition_pause_and_completion(story):
    strategy = rolling(partition=2, maxUnavailable=2)
    await story.create(replicas=3, podManagementPolicy="Parallel", updateStrategy=strategy)
    await story.until(story.rolled_out)
    await story.patch({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}})

    async def is_canary():
        status = await story.status()
        return (status["updatedAvailableReplicas"], status["availableReplicas"]) == (1, 3)

    await story.until(is_canary)
    assert images(await story.pods()) == {"web-0": "a:1", "web-1": "a:1", "web-2": "a:2"}
    await story.patch({"updateStrategy": {"rollingUpdate": {"partition": 0, "paused": True}}})
    await story.manager.step(30)
    assert images(await story.pods())["web-0"] == "a:1"
    await story.patch({"updateStrategy": {"rollingUpdate": {"paused": False}}})
    await story.until(story.rolled_out)
    assert images(await story.pods()) == dict.fromkeys(("web-0", "web-1", "web-2"), "a:2")


async def test_pod_is_unready_during_grace_before_update(story):
    strategy = in_place("InPlaceOnly", inPlaceUpdateStrategy={"gracePeriodSeconds": 20})
    await story.create(replicas=1, template=template(), updateStrategy=strategy)
    await story.until(story.rolled_out)
    await story.patch({"template": template("a:2")})
    await story.manager.step(19)
    pod = (await story.pods())["web-0"]
    assert pod["spec"]["containers"][0]["image"] == "a:1"
    ready = {it["type"]: it["status"] for it in pod["status"]["conditions"]}["Ready"]
    assert ready == "False"
    await story.until(story.rolled_out)
    assert images(await story.pods()) == {"web-0": "a:2"}


async def test_hooked_pod_is_deleted_after_hook_label_is_removed(story):
    held = template()
    held["metadata"]["labels"]["held"] = "yes"
    hook = {"preDelete": {"labelsHandler": {"held": "yes"}}}
    await story.create(replicas=2, template=held, lifecycle=hook)
    await story.until(story.rolled_out)
    await story.patch({"replicas": 1})
    await story.manager.step(10)
    labels = (await story.pods())["web-1"]["metadata"]["labels"]
    assert labels["lifecycle.apps.kruise.io/state"] == "PreparingDelete"
    await story.server.patch(f"{NAMESPACE}/pods/web-1", {"metadata": {"labels": {"held": None}}})
    await story.until(story.rolled_out)
    assert sorted(await story.pods()) == ["web-0"]


async def test_pod_preparing_update_is_not_ready_if_hook_marks_it(story):
    held = template()
    held["metadata"]["labels"]["held"] = "yes"
    hook = {"inPlaceUpdate": {"labelsHandler": {"held": "yes"}, "markPodNotReady": True}}
    await story.create(replicas=1, template=held, lifecycle=hook, updateStrategy=in_place())
    await story.until(story.rolled_out)
    await story.patch({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}})
    await story.manager.step(10)
    assert (await ready_and_state(story, "web-0")) == ("False", "PreparingUpdate")
    await story.server.patch(f"{NAMESPACE}/pods/web-0", {"metadata": {"labels": {"held": None}}})
    await story.manager.step(10)
    assert (await ready_and_state(story, "web-0")) == ("True", "Updated")
    assert images(await story.pods()) == {"web-0": "a:2"}


async def ready_and_state(story, name):
    pod = (await story.pods())[name]
    ready = {it["type"]: it["status"] for it in pod["status"]["conditions"]}["Ready"]
    return ready, pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"]


async def test_claims_of_reserved_ordinal_are_deleted(story):
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"}
    await story.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    claim = claim_template()
    claim["spec"]["storageClassName"] = "fast"
    await story.create(
        replicas=2,
        volumeClaimTemplates=[claim],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete", "whenDeleted": "Retain"},
    )
    await story.until(story.rolled_out)
    told = {"volumeClaimName": "data", "compatibleReplicas": 2, "compatibleReadyReplicas": 2}
    assert (await story.status())["volumeClaims"] == [told]
    await story.patch({"reserveOrdinals": ["0-1"], "replicas": 1})

    async def has_moved():
        claims = await story.names(f"{NAMESPACE}/persistentvolumeclaims")
        return claims == ["data-web-2"] and await story.rolled_out()

    await story.until(has_moved)
    assert len(await story.names("/api/v1/persistentvolumes")) == 1


async def test_scale_subresource_scales_set(story):
    await story.create(replicas=1)
    await story.until(story.rolled_out)
    answer = await story.server.patch(f"{SETS}/web/scale", {"spec": {"replicas": 3}})
    assert answer.status == 200, answer.body
    await story.until(story.rolled_out)
    scale = await story.read(f"{SETS}/web/scale")
    assert scale["status"] == {"replicas": 3, "selector": "app=web"}


async def test_unchanged_set_causes_no_writes(story):
    await story.create(replicas=2, template=template(), updateStrategy=in_place())
    await story.until(story.rolled_out)
    await story.manager.step(30)
    story.manager.transport.writes.clear()
    await story.manager.step(60)
    assert [path for _, path in story.manager.transport.writes if "/leases/" not in path] == []
