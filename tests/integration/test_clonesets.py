"""CloneSets through a real server, with pods that a simulated kubelet runs: one that tells little, and one that tells all."""

import pytest

from mockube.apiserver.http.settings import Settings
from mockube.controller_manager.controllers.cloneset.controller import CLONE_SET
from tests.support.controllers.clonesets import IN_PLACE, claim_template, cloneset, template
from tests.support.controllers.set_stories import NAMESPACE, REVISIONS, Story, telling

SETS = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets"
KRUISE = Settings(packs=("kruise",))


@pytest.fixture(params=[False, True], ids=["as kwok tells", "as a kubelet tells"])
async def story(request):
    tells_all = request.param
    async with telling(
        CLONE_SET, SETS, cloneset, settings=KRUISE, details=tells_all, teller=CloneStory
    ) as story:
        yield story


class CloneStory(Story):
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
        found = (await self.read(f"{NAMESPACE}/events"))["items"]
        return [event["message"] for event in found if event["reason"] == reason]

    async def serving(self):
        return [name for name, pod in (await self.pods()).items() if _serves(pod)]

    async def is_at_rest(self, seconds=30):
        """Nobody writes anything of the set or its pods any more."""
        self.manager.transport.writes.clear()
        await self.manager.step(seconds)
        written = [target for _, target in self.manager.transport.writes]
        return not [target for target in written if "clonesets" in target or "/pods" in target]


def unavailable_within(story, replicas, limit):
    async def check():
        assert len(await story.serving()) >= replicas - limit

    return check


def _serves(pod):
    ready = [it["status"] for it in pod["status"].get("conditions", ()) if it["type"] == "Ready"]
    return ready == ["True"] and "deletionTimestamp" not in pod["metadata"]


async def test_clone_set_is_created_scaled_and_updated(story):
    await story.create(replicas=3)
    await story.until(story.rolled_out)
    assert len(await story.pods()) == 3
    assert await story.is_at_rest()
    await story.patch({"replicas": 1})
    await story.until(story.rolled_out)
    assert len(await story.pods()) == 1
    await story.server.delete(f"{SETS}/web", {"propagationPolicy": "Background"})

    async def is_gone():
        return not await story.names(f"{NAMESPACE}/pods") + await story.names(REVISIONS)

    await story.until(is_gone)


async def test_partition_and_max_unavailable_limit_update(story):
    await story.create(replicas=5, updateStrategy={"partition": 3, "maxUnavailable": 1})
    await story.until(story.rolled_out)
    before = await story.status()
    await story.patch({"template": template("a:2")})
    await story.until(story.rolled_out, always=unavailable_within(story, 5, 1))
    status = await story.status()
    assert (status["expectedUpdatedReplicas"], status["updatedReplicas"]) == (2, 2)
    assert status["currentRevision"] == before["currentRevision"] != status["updateRevision"]
    assert await story.images() == ["a:1"] * 3 + ["a:2"] * 2
    assert len(await story.events("SuccessfulUpdatePodReCreate")) == 2


async def test_percentage_partition_with_in_place_update(story):
    await story.create(replicas=4, updateStrategy={**IN_PLACE, "partition": "99%"})
    await story.until(story.rolled_out)
    before = await story.uids()
    await story.patch({"template": template("a:2")})
    await story.until(story.rolled_out)
    assert await story.uids() == before
    assert await story.images() == ["a:1"] * 3 + ["a:2"]
    (pod,) = [it for it in (await story.pods()).values() if it["spec"]["containers"][0]["image"] == "a:2"]
    (container,) = pod["status"]["containerStatuses"]
    assert (container["image"], container["restartCount"]) == ("a:2", 1)
    gate = next(it for it in pod["status"]["conditions"] if it["type"] == "InPlaceUpdateReady")
    assert gate["status"] == "True"
    (message,) = await story.events("SuccessfulUpdatePodInPlace")
    revision = (await story.status())["updateRevision"]
    assert message == f"successfully update pod {pod['metadata']['name']} in-place(revision {revision})"
    assert await story.is_at_rest()


async def test_unsupported_in_place_change_recreates_pods(story):
    await story.create(replicas=4, updateStrategy={**IN_PLACE, "partition": "99%"})
    await story.until(story.rolled_out)
    before = {*await story.uids()}
    containers = [{"name": "c", "image": "a:1", "env": [{"name": "A", "value": "1"}]}]
    await story.patch({"template": {"spec": {"containers": containers}}})
    await story.until(story.rolled_out)
    assert len({*await story.uids()} - before) == 1


async def test_scale_up_respects_max_unavailable(story):
    await story.create(replicas=0, scaleStrategy={"maxUnavailable": 2})
    await story.until(story.rolled_out)
    await story.patch({"replicas": 5})

    async def at_most_two_wait():
        assert len(await story.pods()) - len(await story.serving()) <= 2

    await story.until(story.rolled_out, always=at_most_two_wait)
    assert "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 2" in await story.events(
        "ScaleUpLimited"
    )


async def test_surge_pods_are_created_first(story):
    await story.create(replicas=3, updateStrategy={"maxUnavailable": 0, "maxSurge": 1})
    await story.until(story.rolled_out)
    await story.patch({"template": template("a:2")})

    async def within_limits():
        pods = (await story.pods()).values()
        assert len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]) <= 4
        assert len(await story.serving()) >= 3

    await story.until(story.rolled_out, always=within_limits)
    assert await story.images() == ["a:2"] * 3


async def test_grace_period_precedes_update(story):
    strategy = {**IN_PLACE, "inPlaceUpdateStrategy": {"gracePeriodSeconds": 10}}
    await story.create(replicas=1, updateStrategy=strategy)
    await story.until(story.rolled_out)
    await story.patch({"template": template("a:2")})
    await story.manager.step(9)
    assert await story.serving() == []
    assert await story.images() == ["a:1"]
    await story.until(story.rolled_out)
    assert len(await story.serving()) == 1
    assert await story.images() == ["a:2"]


async def test_claims_of_lost_pod_are_reused(story):
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"}
    await story.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    wanted = claim_template()
    wanted["spec"]["storageClassName"] = "fast"
    await story.create(replicas=2, volumeClaimTemplates=[wanted])
    await story.until(story.rolled_out)
    claims = await story.names(f"{NAMESPACE}/persistentvolumeclaims")
    lost, _ = await story.names(f"{NAMESPACE}/pods")
    await story.server.delete(f"{NAMESPACE}/pods/{lost}")
    await story.manager.step(1)
    await story.until(story.rolled_out)
    assert await story.names(f"{NAMESPACE}/persistentvolumeclaims") == claims
    await story.patch({"replicas": 0})
    await story.until(story.rolled_out)

    async def claims_are_gone():
        return not await story.names(f"{NAMESPACE}/persistentvolumeclaims")

    await story.until(claims_are_gone)


async def test_lifecycle_hook_holds_pod(story):
    hook = {"inPlaceUpdate": {"finalizersHandler": ["example.com/drain"]}}
    finalizers = ["example.com/drain"]
    held = {**template(), "metadata": {"labels": {"app": "web"}, "finalizers": finalizers}}
    await story.create(replicas=1, updateStrategy=IN_PLACE, lifecycle=hook, template=held)
    await story.until(story.rolled_out)
    await story.patch({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}})
    await story.manager.step(5)
    assert await story.states() == ["PreparingUpdate"]
    (name,) = await story.pods()
    path = f"{NAMESPACE}/pods/{name}"
    await story.server.patch(path, {"metadata": {"finalizers": None}})
    await story.manager.step(5)
    assert await story.states() == ["Updated"]
    await story.server.patch(path, {"metadata": {"finalizers": finalizers}})
    await story.until(story.rolled_out)


async def test_pod_preparing_delete_is_not_ready_if_hook_marks_it(story):
    hook = {"preDelete": {"finalizersHandler": ["example.com/drain"], "markPodNotReady": True}}
    held = {**template(), "metadata": {"labels": {"app": "web"}, "finalizers": ["example.com/drain"]}}
    await story.create(replicas=2, lifecycle=hook, template=held)
    await story.until(story.rolled_out)
    await story.patch({"replicas": 1})
    await story.manager.step(5)
    assert sorted(await story.states()) == ["Normal", "PreparingDelete"]
    (waiting,) = {*await story.pods()} - {*await story.serving()}
    (gate,) = [
        it for it in (await story.pods())[waiting]["status"]["conditions"] if it["type"] == "KruisePodReady"
    ]
    assert (gate["status"], gate["message"]) == ("False", '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]')
    await story.server.patch(f"{NAMESPACE}/pods/{waiting}", {"metadata": {"finalizers": None}})
    await story.until(story.rolled_out)
    assert waiting not in await story.pods()


async def test_specified_pods_are_deleted_and_removed_from_list(story):
    await story.create(replicas=3)
    await story.until(story.rolled_out)
    named, *others = await story.pods()
    await story.patch({"replicas": 2, "scaleStrategy": {"podsToDelete": [named]}})
    await story.until(story.rolled_out)
    assert [*await story.pods()] == others
    assert (await story.read(f"{SETS}/web"))["spec"]["scaleStrategy"].get("podsToDelete", []) == []
    assert await story.is_at_rest()


async def test_new_image_repairs_failing_pod(story):
    broken = {"name": "c", "image": "a:1", "command": ["sh", "-c", "exit 1"]}
    await story.create(replicas=1, updateStrategy=IN_PLACE, template=template(containers=[broken]))
    await story.manager.step(60)
    before = await story.uids()
    await story.patch({"template": {"spec": {"containers": [{**broken, "image": "a:2"}]}}})
    await story.manager.step(2)
    assert await story.uids() == before
    (pod,) = (await story.pods()).values()
    assert pod["status"]["containerStatuses"][0]["image"] == "a:2"


async def test_scale_subresource_and_status_work(story):
    await story.create(replicas=1)
    await story.until(story.rolled_out)
    answer = await story.server.patch(f"{SETS}/web/scale", {"spec": {"replicas": 3}})
    assert answer.status == 200, answer.body
    await story.until(story.rolled_out)
    scale = await story.read(f"{SETS}/web/scale")
    assert scale["status"] == {"replicas": 3, "selector": "app=web"}
    table = await story.server.get(SETS, Accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert table.body["rows"][0]["cells"][:7] == ["web", 3, 3, 3, 3, 3, 3]
