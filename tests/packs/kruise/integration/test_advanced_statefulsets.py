"""Advanced StatefulSets through a real server, with pods that a simulated kubelet runs."""

import pytest

from mockube.packs.kruise.controllers.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from tests.packs.kruise.support.advancedsets import in_place, rolling, template
from tests.support.controllers.set_scenarios import NAMESPACE, REVISIONS, running_scenario
from tests.support.controllers.statefulsets import claim_template, statefulset

SETS = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets"
KRUISE = ("--packs=kruise",)


@pytest.fixture
async def scenario():
    async with running_scenario(ADVANCED_STATEFUL_SET, SETS, statefulset, flags=KRUISE) as scenario:
        yield scenario


def images(pods):
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in pods.items()}


async def test_advanced_stateful_set_is_created_scaled_and_updated(scenario):
    await scenario.create(replicas=3)
    await scenario.until(scenario.rolled_out)
    assert sorted(await scenario.pods()) == ["web-0", "web-1", "web-2"]
    assert scenario.writes(f"{SETS}/web/status") <= 7
    await scenario.patch({"replicas": 2, "reserveOrdinals": [0]})
    await scenario.until(scenario.rolled_out)
    assert sorted(await scenario.pods()) == ["web-1", "web-2"]
    await scenario.server.delete(f"{SETS}/web", {"propagationPolicy": "Background"})

    async def is_gone():
        return not await scenario.names(f"{NAMESPACE}/pods") + await scenario.names(REVISIONS)

    await scenario.until(is_gone)


async def test_pods_are_updated_in_place(scenario):
    strategy = in_place(maxUnavailable="50%")
    await scenario.create(
        replicas=4, podManagementPolicy="Parallel", template=template(), updateStrategy=strategy
    )
    await scenario.until(scenario.rolled_out)
    before = await scenario.pods()
    await scenario.patch({"template": template("a:2")})
    await scenario.until(scenario.rolled_out)
    after = await scenario.pods()
    assert images(after) == dict.fromkeys(before, "a:2")
    for name, pod in after.items():
        assert pod["metadata"]["uid"] == before[name]["metadata"]["uid"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    revision = (await scenario.status())["updateRevision"]
    assert f"successfully update pod web-3 in-place(revision {revision})" in await scenario.messages()


async def test_unsupported_in_place_change_recreates_pods(scenario):
    await scenario.create(replicas=2, template=template(), updateStrategy=in_place())
    await scenario.until(scenario.rolled_out)
    before = await scenario.pods()
    changed = template()
    changed["spec"]["containers"][0]["command"] = ["other"]
    await scenario.patch({"template": changed})
    await scenario.until(scenario.rolled_out)
    after = await scenario.pods()
    assert all(after[name]["metadata"]["uid"] != pod["metadata"]["uid"] for name, pod in before.items())


async def test_canary_by_partition_pause_and_completion(scenario):
    strategy = rolling(partition=2, maxUnavailable=2)
    await scenario.create(replicas=3, podManagementPolicy="Parallel", updateStrategy=strategy)
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}})

    async def is_canary():
        status = await scenario.status()
        return (status["updatedAvailableReplicas"], status["availableReplicas"]) == (1, 3)

    await scenario.until(is_canary)
    assert images(await scenario.pods()) == {"web-0": "a:1", "web-1": "a:1", "web-2": "a:2"}
    await scenario.patch({"updateStrategy": {"rollingUpdate": {"partition": 0, "paused": True}}})
    await scenario.manager.step(30)
    assert images(await scenario.pods())["web-0"] == "a:1"
    await scenario.patch({"updateStrategy": {"rollingUpdate": {"paused": False}}})
    await scenario.until(scenario.rolled_out)
    assert images(await scenario.pods()) == dict.fromkeys(("web-0", "web-1", "web-2"), "a:2")


async def test_pod_is_unready_during_grace_before_update(scenario):
    strategy = in_place("InPlaceOnly", inPlaceUpdateStrategy={"gracePeriodSeconds": 20})
    await scenario.create(replicas=1, template=template(), updateStrategy=strategy)
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"template": template("a:2")})
    await scenario.manager.step(19)
    pod = (await scenario.pods())["web-0"]
    assert pod["spec"]["containers"][0]["image"] == "a:1"
    ready = {it["type"]: it["status"] for it in pod["status"]["conditions"]}["Ready"]
    assert ready == "False"
    await scenario.until(scenario.rolled_out)
    assert images(await scenario.pods()) == {"web-0": "a:2"}


async def test_hooked_pod_is_deleted_after_hook_label_is_removed(scenario):
    held = template()
    held["metadata"]["labels"]["held"] = "yes"
    hook = {"preDelete": {"labelsHandler": {"held": "yes"}}}
    await scenario.create(replicas=2, template=held, lifecycle=hook)
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"replicas": 1})
    await scenario.manager.step(10)
    labels = (await scenario.pods())["web-1"]["metadata"]["labels"]
    assert labels["lifecycle.apps.kruise.io/state"] == "PreparingDelete"
    await scenario.server.patch(f"{NAMESPACE}/pods/web-1", {"metadata": {"labels": {"held": None}}})
    await scenario.until(scenario.rolled_out)
    assert sorted(await scenario.pods()) == ["web-0"]


async def test_pod_preparing_update_is_not_ready_if_hook_marks_it(scenario):
    held = template()
    held["metadata"]["labels"]["held"] = "yes"
    hook = {"inPlaceUpdate": {"labelsHandler": {"held": "yes"}, "markPodNotReady": True}}
    await scenario.create(replicas=1, template=held, lifecycle=hook, updateStrategy=in_place())
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}})
    await scenario.manager.step(10)
    assert (await ready_and_state(scenario, "web-0")) == ("False", "PreparingUpdate")
    await scenario.server.patch(f"{NAMESPACE}/pods/web-0", {"metadata": {"labels": {"held": None}}})
    await scenario.manager.step(10)
    assert (await ready_and_state(scenario, "web-0")) == ("True", "Updated")
    assert images(await scenario.pods()) == {"web-0": "a:2"}


async def ready_and_state(scenario, name):
    pod = (await scenario.pods())[name]
    ready = {it["type"]: it["status"] for it in pod["status"]["conditions"]}["Ready"]
    return ready, pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"]


async def test_claims_of_reserved_ordinal_are_deleted(scenario):
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"}
    await scenario.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    claim = claim_template()
    claim["spec"]["storageClassName"] = "fast"
    await scenario.create(
        replicas=2,
        volumeClaimTemplates=[claim],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete", "whenDeleted": "Retain"},
    )
    await scenario.until(scenario.rolled_out)
    counts = {"volumeClaimName": "data", "compatibleReplicas": 2, "compatibleReadyReplicas": 2}
    assert (await scenario.status())["volumeClaims"] == [counts]
    await scenario.patch({"reserveOrdinals": ["0-1"], "replicas": 1})

    async def has_moved():
        claims = await scenario.names(f"{NAMESPACE}/persistentvolumeclaims")
        return claims == ["data-web-2"] and await scenario.rolled_out()

    await scenario.until(has_moved)
    assert len(await scenario.names("/api/v1/persistentvolumes")) == 1


async def test_scale_subresource_scales_set(scenario):
    await scenario.create(replicas=1)
    await scenario.until(scenario.rolled_out)
    answer = await scenario.server.patch(f"{SETS}/web/scale", {"spec": {"replicas": 3}})
    assert answer.status == 200, answer.body
    await scenario.until(scenario.rolled_out)
    scale = await scenario.read(f"{SETS}/web/scale")
    assert scale["status"] == {"replicas": 3, "selector": "app=web"}


async def test_unchanged_set_causes_no_writes(scenario):
    await scenario.create(replicas=2, template=template(), updateStrategy=in_place())
    await scenario.until(scenario.rolled_out)
    await scenario.manager.step(30)
    scenario.manager.transport.writes.clear()
    await scenario.manager.step(60)
    assert [path for _, path in scenario.manager.transport.writes if "/leases/" not in path] == []
