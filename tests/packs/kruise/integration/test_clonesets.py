"""CloneSets through a real server; a simulated kubelet runs the pods and reports little or full status."""

import pytest

from mockube.packs.kruise.controllers.cloneset.controller import CLONE_SET
from tests.packs.kruise.support.clonesets import IN_PLACE, claim_template, cloneset, template
from tests.support.controllers.set_scenarios import NAMESPACE, REVISIONS, Scenario, running_scenario

SETS = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets"
KRUISE = ("--packs=kruise",)


@pytest.fixture(params=[False, True], ids=["status as of kwok", "status as of a kubelet"])
async def scenario(request):
    tells_all = request.param
    async with running_scenario(
        CLONE_SET, SETS, cloneset, flags=KRUISE, details=tells_all, scenario_class=CloneScenario
    ) as scenario:
        yield scenario


class CloneScenario(Scenario):
    async def rolled_out(self):
        found = await self.read(f"{SETS}/web")
        status = found.get("status") or {}
        wanted = found["spec"]["replicas"]
        counts = {status.get(field) for field in ("replicas", "availableReplicas")}
        is_current = status.get("observedGeneration") == found["metadata"]["generation"]
        updated, expected = (
            status.get(field) or 0 for field in ("updatedAvailableReplicas", "expectedUpdatedReplicas")
        )
        return is_current and updated >= expected and counts == {wanted}

    async def uids(self):
        return {name: pod["metadata"]["uid"] for name, pod in (await self.pods()).items()}

    async def images(self):
        return sorted(pod["spec"]["containers"][0]["image"] for pod in (await self.pods()).values())

    async def states(self):
        pods = (await self.pods()).values()
        return [pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] for pod in pods]

    async def events(self, reason):
        items = (await self.read(f"{NAMESPACE}/events"))["items"]
        return [event["message"] for event in items if event["reason"] == reason]

    async def serving(self):
        return [name for name, pod in (await self.pods()).items() if _serves(pod)]

    async def is_at_rest(self, seconds=30):
        """Wait until the set and its pods are no longer written."""
        self.manager.transport.writes.clear()
        await self.manager.step(seconds)
        written = [target for _, target in self.manager.transport.writes]
        return not [target for target in written if "clonesets" in target or "/pods" in target]


def unavailable_within(scenario, replicas, limit):
    async def check():
        assert len(await scenario.serving()) >= replicas - limit

    return check


def _serves(pod):
    ready = [it["status"] for it in pod["status"].get("conditions", ()) if it["type"] == "Ready"]
    return ready == ["True"] and "deletionTimestamp" not in pod["metadata"]


async def test_clone_set_is_created_scaled_and_updated(scenario):
    await scenario.create(replicas=3)
    await scenario.until(scenario.rolled_out)
    assert len(await scenario.pods()) == 3
    assert await scenario.is_at_rest()
    await scenario.patch({"replicas": 1})
    await scenario.until(scenario.rolled_out)
    assert len(await scenario.pods()) == 1
    await scenario.server.delete(f"{SETS}/web", {"propagationPolicy": "Background"})

    async def is_gone():
        return not await scenario.names(f"{NAMESPACE}/pods") + await scenario.names(REVISIONS)

    await scenario.until(is_gone)


async def test_partition_and_max_unavailable_limit_update(scenario):
    await scenario.create(replicas=5, updateStrategy={"partition": 3, "maxUnavailable": 1})
    await scenario.until(scenario.rolled_out)
    before = await scenario.status()
    await scenario.patch({"template": template("a:2")})
    await scenario.until(scenario.rolled_out, always=unavailable_within(scenario, 5, 1))
    status = await scenario.status()
    assert (status["expectedUpdatedReplicas"], status["updatedReplicas"]) == (2, 2)
    assert status["currentRevision"] == before["currentRevision"] != status["updateRevision"]
    assert await scenario.images() == ["a:1"] * 3 + ["a:2"] * 2
    assert len(await scenario.events("SuccessfulUpdatePodReCreate")) == 2


async def test_percentage_partition_with_in_place_update(scenario):
    await scenario.create(replicas=4, updateStrategy={**IN_PLACE, "partition": "99%"})
    await scenario.until(scenario.rolled_out)
    before = await scenario.uids()
    await scenario.patch({"template": template("a:2")})
    await scenario.until(scenario.rolled_out)
    assert await scenario.uids() == before
    assert await scenario.images() == ["a:1"] * 3 + ["a:2"]
    (pod,) = [it for it in (await scenario.pods()).values() if it["spec"]["containers"][0]["image"] == "a:2"]
    (container,) = pod["status"]["containerStatuses"]
    assert (container["image"], container["restartCount"]) == ("a:2", 1)
    gate = next(it for it in pod["status"]["conditions"] if it["type"] == "InPlaceUpdateReady")
    assert gate["status"] == "True"
    (message,) = await scenario.events("SuccessfulUpdatePodInPlace")
    revision = (await scenario.status())["updateRevision"]
    assert message == f"successfully update pod {pod['metadata']['name']} in-place(revision {revision})"
    assert await scenario.is_at_rest()


async def test_unsupported_in_place_change_recreates_pods(scenario):
    await scenario.create(replicas=4, updateStrategy={**IN_PLACE, "partition": "99%"})
    await scenario.until(scenario.rolled_out)
    before = {*await scenario.uids()}
    containers = [{"name": "c", "image": "a:1", "env": [{"name": "A", "value": "1"}]}]
    await scenario.patch({"template": {"spec": {"containers": containers}}})
    await scenario.until(scenario.rolled_out)
    assert len({*await scenario.uids()} - before) == 1


async def test_scale_up_respects_max_unavailable(scenario):
    await scenario.create(replicas=0, scaleStrategy={"maxUnavailable": 2})
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"replicas": 5})

    async def at_most_two_wait():
        assert len(await scenario.pods()) - len(await scenario.serving()) <= 2

    await scenario.until(scenario.rolled_out, always=at_most_two_wait)
    assert "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 2" in await scenario.events(
        "ScaleUpLimited"
    )


async def test_surge_pods_are_created_first(scenario):
    await scenario.create(replicas=3, updateStrategy={"maxUnavailable": 0, "maxSurge": 1})
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"template": template("a:2")})

    async def within_limits():
        pods = (await scenario.pods()).values()
        assert len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]) <= 4
        assert len(await scenario.serving()) >= 3

    await scenario.until(scenario.rolled_out, always=within_limits)
    assert await scenario.images() == ["a:2"] * 3


async def test_grace_period_precedes_update(scenario):
    strategy = {**IN_PLACE, "inPlaceUpdateStrategy": {"gracePeriodSeconds": 10}}
    await scenario.create(replicas=1, updateStrategy=strategy)
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"template": template("a:2")})
    await scenario.manager.step(9)
    assert await scenario.serving() == []
    assert await scenario.images() == ["a:1"]
    await scenario.until(scenario.rolled_out)
    assert len(await scenario.serving()) == 1
    assert await scenario.images() == ["a:2"]


async def test_claims_of_lost_pod_are_reused(scenario):
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"}
    await scenario.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    wanted = claim_template()
    wanted["spec"]["storageClassName"] = "fast"
    await scenario.create(replicas=2, volumeClaimTemplates=[wanted])
    await scenario.until(scenario.rolled_out)
    claims = await scenario.names(f"{NAMESPACE}/persistentvolumeclaims")
    lost, _ = await scenario.names(f"{NAMESPACE}/pods")
    await scenario.server.delete(f"{NAMESPACE}/pods/{lost}")
    await scenario.manager.step(1)
    await scenario.until(scenario.rolled_out)
    assert await scenario.names(f"{NAMESPACE}/persistentvolumeclaims") == claims
    await scenario.patch({"replicas": 0})
    await scenario.until(scenario.rolled_out)

    async def claims_are_gone():
        return not await scenario.names(f"{NAMESPACE}/persistentvolumeclaims")

    await scenario.until(claims_are_gone)


async def test_lifecycle_hook_holds_pod(scenario):
    hook = {"inPlaceUpdate": {"finalizersHandler": ["example.com/drain"]}}
    finalizers = ["example.com/drain"]
    held = {**template(), "metadata": {"labels": {"app": "web"}, "finalizers": finalizers}}
    await scenario.create(replicas=1, updateStrategy=IN_PLACE, lifecycle=hook, template=held)
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}})
    await scenario.manager.step(5)
    assert await scenario.states() == ["PreparingUpdate"]
    (name,) = await scenario.pods()
    path = f"{NAMESPACE}/pods/{name}"
    await scenario.server.patch(path, {"metadata": {"finalizers": None}})
    await scenario.manager.step(5)
    assert await scenario.states() == ["Updated"]
    await scenario.server.patch(path, {"metadata": {"finalizers": finalizers}})
    await scenario.until(scenario.rolled_out)


async def test_pod_preparing_delete_is_not_ready_if_hook_marks_it(scenario):
    hook = {"preDelete": {"finalizersHandler": ["example.com/drain"], "markPodNotReady": True}}
    held = {**template(), "metadata": {"labels": {"app": "web"}, "finalizers": ["example.com/drain"]}}
    await scenario.create(replicas=2, lifecycle=hook, template=held)
    await scenario.until(scenario.rolled_out)
    await scenario.patch({"replicas": 1})
    await scenario.manager.step(5)
    assert sorted(await scenario.states()) == ["Normal", "PreparingDelete"]
    (waiting,) = {*await scenario.pods()} - {*await scenario.serving()}
    (gate,) = [
        it
        for it in (await scenario.pods())[waiting]["status"]["conditions"]
        if it["type"] == "KruisePodReady"
    ]
    assert (gate["status"], gate["message"]) == ("False", '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]')
    await scenario.server.patch(f"{NAMESPACE}/pods/{waiting}", {"metadata": {"finalizers": None}})
    await scenario.until(scenario.rolled_out)
    assert waiting not in await scenario.pods()


async def test_specified_pods_are_deleted_and_removed_from_list(scenario):
    await scenario.create(replicas=3)
    await scenario.until(scenario.rolled_out)
    named, *others = await scenario.pods()
    await scenario.patch({"replicas": 2, "scaleStrategy": {"podsToDelete": [named]}})
    await scenario.until(scenario.rolled_out)
    assert [*await scenario.pods()] == others
    assert (await scenario.read(f"{SETS}/web"))["spec"]["scaleStrategy"].get("podsToDelete", []) == []
    assert await scenario.is_at_rest()


async def test_new_image_repairs_failing_pod(scenario):
    broken = {"name": "c", "image": "a:1", "command": ["sh", "-c", "exit 1"]}
    await scenario.create(replicas=1, updateStrategy=IN_PLACE, template=template(containers=[broken]))
    await scenario.manager.step(60)
    before = await scenario.uids()
    await scenario.patch({"template": {"spec": {"containers": [{**broken, "image": "a:2"}]}}})
    await scenario.manager.step(2)
    assert await scenario.uids() == before
    (pod,) = (await scenario.pods()).values()
    assert pod["status"]["containerStatuses"][0]["image"] == "a:2"


async def test_scale_subresource_and_status_work(scenario):
    await scenario.create(replicas=1)
    await scenario.until(scenario.rolled_out)
    answer = await scenario.server.patch(f"{SETS}/web/scale", {"spec": {"replicas": 3}})
    assert answer.status == 200, answer.body
    await scenario.until(scenario.rolled_out)
    scale = await scenario.read(f"{SETS}/web/scale")
    assert scale["status"] == {"replicas": 3, "selector": "app=web"}
    table = await scenario.server.get(SETS, Accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert table.body["rows"][0]["cells"][:7] == ["web", 3, 3, 3, 3, 3, 3]
