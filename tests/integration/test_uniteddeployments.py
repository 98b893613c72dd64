"""UnitedDeployments by the whole manager beside a real server: the controllers of all kinds, scheduler, simulated nodes."""

import orjson
import pytest

from mockube.controller_manager.controllers.uniteddeployment.subset import LABEL_REVISION, LABEL_SUBSET_NAME
from mockube.etcd.kv import Put
from tests.support.controllers.united_stories import UNITED, Story, united_story
from tests.support.controllers.uniteddeployments import (
    KINDS,
    LABELS,
    adaptive,
    pods_template,
    subset,
    template_of,
    united,
)

of_each_kind = pytest.mark.parametrize("kind", KINDS)
ZONES = ("x", "y", "z")


@pytest.fixture
async def story():
    async with united_story(zones=ZONES) as story:
        yield story


def in_zone(name, zone, **fields):
    required = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return subset(name, nodeSelectorTerm={"matchExpressions": [required]}, **fields)


SPREAD = [in_zone(f"in-{zone}", zone) for zone in ZONES]


@of_each_kind
async def test_pods_are_spread_over_three_subsets(story, kind):
    await story.deploy(united(kind, SPREAD))
    assert await story.sizes() == {"in-x": 1, "in-y": 1, "in-z": 1}
    assert await story.zones() == {"in-x": ["x"], "in-y": ["y"], "in-z": ["z"]}
    assert ("SuccessfulUpdateSubset", f"Create 3 Subset ({kind})") in await story.messages()
    (revision,) = await story.revisions()
    assert revision.startswith("foo-")
    for workload in await story.workloads(kind):
        own = {LABEL_SUBSET_NAME: story.subset_of(workload)}
        assert workload["metadata"]["generateName"] == f"foo-{story.subset_of(workload)}-"
        assert workload["metadata"]["labels"] == LABELS | own | {LABEL_REVISION: revision}
        assert workload["spec"]["selector"] == {"matchLabels": LABELS | own}
        template = workload["spec"]["template"]
        assert template["metadata"]["labels"] == LABELS | own | {LABEL_REVISION: revision}
    assert await story.is_at_rest()


@of_each_kind
async def test_scale_subresource_scales_and_then_rests(story, kind):
    bounds = {"minReplicas": 1, "maxReplicas": 2}
    await story.deploy(
        united(kind, [subset("a", **bounds), subset("b", **bounds), subset("c", minReplicas=1)])
    )
    scale = await story.read(f"{UNITED}/foo/scale")
    assert scale["status"] == {"replicas": 3, "selector": "app=foo"}
    answer = await story.server.put(f"{UNITED}/foo/scale", {**scale, "spec": {"replicas": 7}})
    assert answer.status == 200, answer.body
    await story.until(story.is_rolled_out)
    assert await story.sizes() == {"a": 2, "b": 2, "c": 3}
    foo = await story.foo()
    assert foo["status"]["replicas"] == 7
    assert foo["status"]["observedGeneration"] == foo["metadata"]["generation"]
    assert await story.is_at_rest()
    assert (await story.foo())["metadata"]["resourceVersion"] == foo["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Deployment"])
async def test_rollout_by_partitions(story, kind):
    await story.deploy(united(kind, ["a", "b"], replicas=10))
    first = (await story.foo())["status"]["currentRevision"]
    await story.patch(updateStrategy={"manualUpdate": {"partitions": {"a": 4, "b": 3}}})
    await story.patch(template=template_of(kind, "a:2"))

    async def is_partly_updated():
        return (await story.foo())["status"].get("updatedReadyReplicas") == 3

    await story.until(is_partly_updated)
    await story.manager.step(30)
    assert await story.images() == {"a": ["a:1"] * 4 + ["a:2"], "b": ["a:1"] * 3 + ["a:2"] * 2}
    status = (await story.foo())["status"]
    assert status["updateStatus"]["currentPartitions"] == {"a": 4, "b": 3}
    assert status["currentRevision"] == first != status["updateStatus"]["updatedRevision"]
    assert (await story.conditions())["UnitedDeploymentUpdated"][0] == "False"
    assert await story.is_at_rest()

    await story.patch(updateStrategy={"manualUpdate": {"partitions": None}})
    await story.until(story.is_rolled_out)
    assert await story.images() == {"a": ["a:2"] * 5, "b": ["a:2"] * 5}
    status = (await story.foo())["status"]
    assert status["currentRevision"] == status["updateStatus"]["updatedRevision"]

    async def is_told():
        told = (await story.conditions())["UnitedDeploymentUpdated"]
        return told == ("True", "UnitedDeploymentRevisionUpdated")

    await story.until(is_told)


@of_each_kind
async def test_server_without_pack_webhooks_is_supported(kind):
    async with united_story(settings=None) as story:
        await story.define()
        given = united(kind, ["a", "b"], replicas=4)
        given["spec"] = {
            field: given["spec"][field] for field in ("replicas", "selector", "template", "topology")
        }
        await story.deploy(given)
        partitions = {"manualUpdate": {"partitions": {"a": 1}}}
        await story.patch(updateStrategy=partitions, template=template_of(kind, "a:2"))
        await story.manager.step(60)
        is_kept = kind != "Deployment"
        assert await story.images() == {"a": ["a:1" if is_kept else "a:2", "a:2"], "b": ["a:2"] * 2}
        await story.patch(updateStrategy=None)
        await story.until(story.is_rolled_out)
        assert await story.images() == {"a": ["a:2"] * 2, "b": ["a:2"] * 2}
        assert await story.is_at_rest()


@of_each_kind
async def test_removed_subset_and_changed_kind_are_deleted(story, kind):
    await story.deploy(united(kind, ["a", "b", "c"], replicas=6))
    await story.patch(topology={"subsets": [subset("a"), subset("c")]})
    await story.until(story.is_rolled_out)
    assert await story.sizes() == {"a": 3, "c": 3}
    assert ("SuccessfulUpdateSubset", f"Delete 1 Subset ({kind})") in await story.messages()
    other = KINDS[(KINDS.index(kind) + 1) % len(KINDS)]
    await story.replace(template=template_of(other))
    await story.until(story.is_rolled_out)
    await story.manager.step(40)
    assert await story.workloads(kind) == []
    assert len(await story.workloads(other)) == 2
    assert len(await story.pods()) == 6


@of_each_kind
async def test_duplicate_workload_is_deleted(story, kind):
    await story.deploy(united(kind))
    first = next(it for it in await story.workloads(kind) if story.subset_of(it) == "a")
    metadata = {key: first["metadata"][key] for key in ("labels", "annotations", "ownerReferences")}
    await story.post(
        story.path_of(kind), {"metadata": {**metadata, "name": "zz-copied"}, "spec": first["spec"]}
    )
    await story.manager.step(40)
    names = {it["metadata"]["name"] for it in await story.workloads(kind)}
    assert "zz-copied" not in names
    assert len(names) == len(await story.pods()) == 3
    assert (await story.foo())["status"]["replicas"] == 3


@of_each_kind
async def test_revision_history_is_limited(story, kind):
    await story.deploy(united(kind, replicas=0, revisionHistoryLimit=2))
    for image in ("a:2", "a:3"):
        await story.patch(template=template_of(kind, image))
        await story.until(story.is_rolled_out)
    before = await story.revisions()
    assert sorted(before.values()) == [2, 3]
    second = next(name for name, number in before.items() if number == 2)
    await story.patch(template=template_of(kind, "a:2"))
    await story.until(story.is_rolled_out)
    assert (await story.revisions())[second] == 4
    assert len(await story.revisions()) == 2


async def test_on_delete_pods_are_replaced_after_deletion(story):
    manual = {"updateStrategy": {"type": "OnDelete"}}
    await story.deploy(
        united("StatefulSet", ["a", "b"], replicas=10, template=template_of("StatefulSet", **manual))
    )
    await story.patch(template=template_of("StatefulSet", "a:2", **manual))
    await story.manager.step(30)
    for workload in await story.workloads("StatefulSet"):
        assert workload["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert (await story.images())["a"] == ["a:1"] * 5
    assert await story.is_at_rest()
    first = next(pod for pod in await story.pods() if story.subset_of(pod) == "a")
    await story.server.delete(f"{Story.PODS}/{first['metadata']['name']}", {})
    await story.manager.step(30)
    assert (await story.images())["a"] == ["a:1"] * 4 + ["a:2"]
    assert (await story.foo())["status"]["updatedReplicas"] == 1


async def test_unready_pods_do_not_block_their_replacement(story):
    never = {"metadata": {"annotations": {"mockube.dev/ready-after": "never"}}}
    parallel = {"podManagementPolicy": "Parallel"}
    subsets = [subset("a", patch=never), subset("b", patch=never)]
    await story.post(
        UNITED, united("StatefulSet", subsets, replicas=10, template=template_of("StatefulSet", **parallel))
    )
    await story.manager.step(30)
    before = {pod["metadata"]["uid"] for pod in await story.pods()}
    await story.patch(
        updateStrategy={"manualUpdate": {"partitions": {"a": 4, "b": 3}}},
        template=template_of("StatefulSet", "a:2", **parallel),
    )
    await story.manager.step(30)
    replaced = {
        (story.subset_of(pod), pod["metadata"]["name"].rpartition("-")[2])
        for pod in await story.pods()
        if pod["metadata"]["uid"] not in before
    }
    assert replaced == {("a", "4"), ("b", "3"), ("b", "4")}
    assert await story.images() == {"a": ["a:1"] * 4 + ["a:2"], "b": ["a:1"] * 3 + ["a:2"] * 2}


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
async def test_subset_without_nodes_is_avoided_for_a_time(story, kind):
    subsets = [
        in_zone("s0", "x", maxReplicas=2),
        in_zone("s1", "nowhere", maxReplicas=2),
        in_zone("s2", "z"),
    ]
    await story.post(UNITED, united(kind, subsets, strategy=adaptive(10, 10)))
    await story.manager.step(15)
    assert await story.sizes() == {"s0": 2, "s1": 0, "s2": 1}
    assert await story.schedulable("s1") == ("False", "reschedule")
    await story.patch(replicas=5)
    await story.manager.settle()
    assert await story.sizes() == {"s0": 2, "s1": 0, "s2": 3}
    await story.patch(replicas=4)
    await story.manager.step(2)
    assert await story.sizes() == {"s0": 2, "s1": 0, "s2": 2}
    await story.open_zone("nowhere")
    await story.manager.step(15)
    assert await story.schedulable("s1") == ("True", "recover")
    await story.patch(replicas=5)
    await story.manager.step(5)
    assert await story.sizes() == {"s0": 2, "s1": 1, "s2": 2}
    assert await story.is_at_rest()


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
async def test_reserved_pods_are_replaced_elsewhere(story, kind):
    bounds = {"minReplicas": 1, "maxReplicas": 2}
    subsets = [
        in_zone("s0", "x", **bounds),
        in_zone("s1", "nowhere", **bounds),
        in_zone("s2", "nowhere", **bounds),
        in_zone("s3", "z", minReplicas=1),
    ]
    strategy = adaptive(10, 5, reserves=True)
    await story.post(UNITED, united(kind, subsets, replicas=8, strategy=strategy))
    await story.manager.settle()
    assert await story.sizes() == {"s0": 2, "s1": 2, "s2": 2, "s3": 2}
    await story.manager.step(15)
    assert await story.sizes() == {"s0": 2, "s1": 2, "s2": 2, "s3": 6}
    status = (await story.foo())["status"]
    assert (status["replicas"], status["readyReplicas"], status["reservedPods"]) == (8, 8, 4)
    await story.open_zone("nowhere")
    await story.manager.step(30)
    assert await story.sizes() == {"s0": 2, "s1": 2, "s2": 2, "s3": 2}
    assert "reservedPods" not in (await story.foo())["status"]
    assert await story.is_at_rest()


async def test_subset_tolerations_are_applied(story):
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    await story.patch_nodes("y", {"spec": {"taints": [taint]}})
    tolerated = [{"key": "gpu", "operator": "Exists"}]
    subsets = [in_zone("in-x", "x"), in_zone("in-y", "y", tolerations=tolerated)]
    pods = pods_template(tolerations=[{"key": "other", "operator": "Exists"}])
    await story.deploy(
        united("Deployment", subsets, replicas=2, template=template_of("Deployment", pods=pods))
    )
    assert await story.zones() == {"in-x": ["x"], "in-y": ["y"]}


async def test_deletion_removes_workloads_and_pods(story):
    await story.deploy(united("Deployment"))
    await story.server.delete(f"{UNITED}/foo", {"propagationPolicy": "Background"})
    await story.manager.step(60)
    assert await story.workloads("Deployment") == []
    assert await story.pods() == []
    assert await story.revisions() == {}


@pytest.mark.parametrize("spec", [[], 7, {"replicas": "x", "selector": [], "template": 7, "topology": []}])
async def test_malformed_workloads_do_not_affect_others(story, spec):
    """As another program may have written them into the store; each is tried again by itself."""
    for kind, plural in (("CloneSet", "clonesets"), ("UnitedDeployment", "uniteddeployments")):
        metadata = {"name": "bad", "namespace": "default", "uid": f"uid-of-bad-{plural}"}
        tree = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
        key = f"/registry/apps.kruise.io/{plural}/default/bad".encode()
        result = await story.server.server.backend.kv.put(Put(key=key, value=orjson.dumps(tree)))
        await story.server.server.backend.watch_cache.wait_reached(result.revision)
        path = f"/apis/apps.kruise.io/v1alpha1/namespaces/default/{plural}/bad"
        assert (await story.read(path))["spec"] == spec
    await story.deploy(united("CloneSet", SPREAD))
    assert await story.zones() == {"in-x": ["x"], "in-y": ["y"], "in-z": ["z"]}
