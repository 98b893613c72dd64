"""UnitedDeployments by the whole manager with a real server: all controllers, scheduler, simulated nodes."""

import orjson
import pytest

from mockube.etcd.kv import Put
from mockube.packs.kruise.controllers.uniteddeployment.subset import (
    LABEL_REVISION,
    LABEL_SUBSET_NAME,
)
from tests.packs.kruise.support.united_scenarios import UNITED, Scenario, united_scenario
from tests.packs.kruise.support.uniteddeployments import (
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
async def scenario():
    async with united_scenario(zones=ZONES) as scenario:
        yield scenario


def subset_in_zone(name, zone, **fields):
    required = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return subset(name, nodeSelectorTerm={"matchExpressions": [required]}, **fields)


SPREAD = [subset_in_zone(f"in-{zone}", zone) for zone in ZONES]


@of_each_kind
async def test_pods_are_spread_over_three_subsets(scenario, kind):
    await scenario.deploy(united(kind, SPREAD))
    assert await scenario.sizes() == {"in-x": 1, "in-y": 1, "in-z": 1}
    assert await scenario.zones() == {"in-x": ["x"], "in-y": ["y"], "in-z": ["z"]}
    assert ("SuccessfulUpdateSubset", f"Create 3 Subset ({kind})") in await scenario.messages()
    (revision,) = await scenario.revisions()
    assert revision.startswith("foo-")
    for workload in await scenario.workloads(kind):
        own = {LABEL_SUBSET_NAME: scenario.subset_of(workload)}
        assert workload["metadata"]["generateName"] == f"foo-{scenario.subset_of(workload)}-"
        assert workload["metadata"]["labels"] == LABELS | own | {LABEL_REVISION: revision}
        assert workload["spec"]["selector"] == {"matchLabels": LABELS | own}
        template = workload["spec"]["template"]
        assert template["metadata"]["labels"] == LABELS | own | {LABEL_REVISION: revision}
    assert await scenario.is_at_rest()


@of_each_kind
async def test_scale_subresource_scales_and_then_rests(scenario, kind):
    bounds = {"minReplicas": 1, "maxReplicas": 2}
    await scenario.deploy(
        united(kind, [subset("a", **bounds), subset("b", **bounds), subset("c", minReplicas=1)])
    )
    scale = await scenario.read(f"{UNITED}/foo/scale")
    assert scale["status"] == {"replicas": 3, "selector": "app=foo"}
    answer = await scenario.server.put(f"{UNITED}/foo/scale", {**scale, "spec": {"replicas": 7}})
    assert answer.status == 200, answer.body
    await scenario.until(scenario.is_rolled_out)
    assert await scenario.sizes() == {"a": 2, "b": 2, "c": 3}
    foo = await scenario.foo()
    assert foo["status"]["replicas"] == 7
    assert foo["status"]["observedGeneration"] == foo["metadata"]["generation"]
    assert await scenario.is_at_rest()
    assert (await scenario.foo())["metadata"]["resourceVersion"] == foo["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Deployment"])
async def test_rollout_by_partitions(scenario, kind):
    await scenario.deploy(united(kind, ["a", "b"], replicas=10))
    first = (await scenario.foo())["status"]["currentRevision"]
    await scenario.patch(updateStrategy={"manualUpdate": {"partitions": {"a": 4, "b": 3}}})
    await scenario.patch(template=template_of(kind, "a:2"))

    async def is_partly_updated():
        return (await scenario.foo())["status"].get("updatedReadyReplicas") == 3

    await scenario.until(is_partly_updated)
    await scenario.manager.step(30)
    assert await scenario.images() == {"a": ["a:1"] * 4 + ["a:2"], "b": ["a:1"] * 3 + ["a:2"] * 2}
    status = (await scenario.foo())["status"]
    assert status["updateStatus"]["currentPartitions"] == {"a": 4, "b": 3}
    assert status["currentRevision"] == first != status["updateStatus"]["updatedRevision"]
    assert (await scenario.conditions())["UnitedDeploymentUpdated"][0] == "False"
    assert await scenario.is_at_rest()

    await scenario.patch(updateStrategy={"manualUpdate": {"partitions": None}})
    await scenario.until(scenario.is_rolled_out)
    assert await scenario.images() == {"a": ["a:2"] * 5, "b": ["a:2"] * 5}
    status = (await scenario.foo())["status"]
    assert status["currentRevision"] == status["updateStatus"]["updatedRevision"]

    async def has_updated_condition():
        condition = (await scenario.conditions())["UnitedDeploymentUpdated"]
        return condition == ("True", "UnitedDeploymentRevisionUpdated")

    await scenario.until(has_updated_condition)


@of_each_kind
async def test_server_without_pack_webhooks_is_supported(kind):
    async with united_scenario(flags=()) as scenario:
        await scenario.define()
        given = united(kind, ["a", "b"], replicas=4)
        given["spec"] = {
            field: given["spec"][field] for field in ("replicas", "selector", "template", "topology")
        }
        await scenario.deploy(given)
        partitions = {"manualUpdate": {"partitions": {"a": 1}}}
        await scenario.patch(updateStrategy=partitions, template=template_of(kind, "a:2"))
        await scenario.manager.step(60)
        is_kept = kind != "Deployment"
        assert await scenario.images() == {"a": ["a:1" if is_kept else "a:2", "a:2"], "b": ["a:2"] * 2}
        await scenario.patch(updateStrategy=None)
        await scenario.until(scenario.is_rolled_out)
        assert await scenario.images() == {"a": ["a:2"] * 2, "b": ["a:2"] * 2}
        assert await scenario.is_at_rest()


@of_each_kind
async def test_removed_subset_and_changed_kind_are_deleted(scenario, kind):
    await scenario.deploy(united(kind, ["a", "b", "c"], replicas=6))
    await scenario.patch(topology={"subsets": [subset("a"), subset("c")]})
    await scenario.until(scenario.is_rolled_out)
    assert await scenario.sizes() == {"a": 3, "c": 3}
    assert ("SuccessfulUpdateSubset", f"Delete 1 Subset ({kind})") in await scenario.messages()
    other = KINDS[(KINDS.index(kind) + 1) % len(KINDS)]
    await scenario.replace(template=template_of(other))
    await scenario.until(scenario.is_rolled_out)
    await scenario.manager.step(40)
    assert await scenario.workloads(kind) == []
    assert len(await scenario.workloads(other)) == 2
    assert len(await scenario.pods()) == 6


@of_each_kind
async def test_duplicate_workload_is_deleted(scenario, kind):
    await scenario.deploy(united(kind))
    first = next(it for it in await scenario.workloads(kind) if scenario.subset_of(it) == "a")
    metadata = {key: first["metadata"][key] for key in ("labels", "annotations", "ownerReferences")}
    await scenario.post(
        scenario.path_of(kind), {"metadata": {**metadata, "name": "zz-copied"}, "spec": first["spec"]}
    )
    await scenario.manager.step(40)
    names = {it["metadata"]["name"] for it in await scenario.workloads(kind)}
    assert "zz-copied" not in names
    assert len(names) == len(await scenario.pods()) == 3
    assert (await scenario.foo())["status"]["replicas"] == 3


@of_each_kind
async def test_revision_history_is_limited(scenario, kind):
    await scenario.deploy(united(kind, replicas=0, revisionHistoryLimit=2))
    for image in ("a:2", "a:3"):
        await scenario.patch(template=template_of(kind, image))
        await scenario.until(scenario.is_rolled_out)
    before = await scenario.revisions()
    assert sorted(before.values()) == [2, 3]
    second = next(name for name, number in before.items() if number == 2)
    await scenario.patch(template=template_of(kind, "a:2"))
    await scenario.until(scenario.is_rolled_out)
    assert (await scenario.revisions())[second] == 4
    assert len(await scenario.revisions()) == 2


async def test_on_delete_pods_are_replaced_after_deletion(scenario):
    manual = {"updateStrategy": {"type": "OnDelete"}}
    await scenario.deploy(
        united("StatefulSet", ["a", "b"], replicas=10, template=template_of("StatefulSet", **manual))
    )
    await scenario.patch(template=template_of("StatefulSet", "a:2", **manual))
    await scenario.manager.step(30)
    for workload in await scenario.workloads("StatefulSet"):
        assert workload["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert (await scenario.images())["a"] == ["a:1"] * 5
    assert await scenario.is_at_rest()
    first = next(pod for pod in await scenario.pods() if scenario.subset_of(pod) == "a")
    await scenario.server.delete(f"{Scenario.PODS}/{first['metadata']['name']}", {})
    await scenario.manager.step(30)
    assert (await scenario.images())["a"] == ["a:1"] * 4 + ["a:2"]
    assert (await scenario.foo())["status"]["updatedReplicas"] == 1


async def test_unready_pods_do_not_block_their_replacement(scenario):
    never = {"metadata": {"annotations": {"mockube.dev/ready-after": "never"}}}
    parallel = {"podManagementPolicy": "Parallel"}
    subsets = [subset("a", patch=never), subset("b", patch=never)]
    await scenario.post(
        UNITED, united("StatefulSet", subsets, replicas=10, template=template_of("StatefulSet", **parallel))
    )
    await scenario.manager.step(30)
    before = {pod["metadata"]["uid"] for pod in await scenario.pods()}
    await scenario.patch(
        updateStrategy={"manualUpdate": {"partitions": {"a": 4, "b": 3}}},
        template=template_of("StatefulSet", "a:2", **parallel),
    )
    await scenario.manager.step(30)
    replaced = {
        (scenario.subset_of(pod), pod["metadata"]["name"].rpartition("-")[2])
        for pod in await scenario.pods()
        if pod["metadata"]["uid"] not in before
    }
    assert replaced == {("a", "4"), ("b", "3"), ("b", "4")}
    assert await scenario.images() == {"a": ["a:1"] * 4 + ["a:2"], "b": ["a:1"] * 3 + ["a:2"] * 2}


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
async def test_subset_without_nodes_is_avoided_for_a_time(scenario, kind):
    subsets = [
        subset_in_zone("s0", "x", maxReplicas=2),
        subset_in_zone("s1", "nowhere", maxReplicas=2),
        subset_in_zone("s2", "z"),
    ]
    await scenario.post(UNITED, united(kind, subsets, strategy=adaptive(10, 10)))
    await scenario.manager.step(15)
    assert await scenario.sizes() == {"s0": 2, "s1": 0, "s2": 1}
    assert await scenario.schedulable("s1") == ("False", "reschedule")
    await scenario.patch(replicas=5)
    await scenario.manager.settle()
    assert await scenario.sizes() == {"s0": 2, "s1": 0, "s2": 3}
    await scenario.patch(replicas=4)
    await scenario.manager.step(2)
    assert await scenario.sizes() == {"s0": 2, "s1": 0, "s2": 2}
    await scenario.open_zone("nowhere")
    await scenario.manager.step(15)
    assert await scenario.schedulable("s1") == ("True", "recover")
    await scenario.patch(replicas=5)
    await scenario.manager.step(5)
    assert await scenario.sizes() == {"s0": 2, "s1": 1, "s2": 2}
    assert await scenario.is_at_rest()


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
async def test_reserved_pods_are_replaced_elsewhere(scenario, kind):
    bounds = {"minReplicas": 1, "maxReplicas": 2}
    subsets = [
        subset_in_zone("s0", "x", **bounds),
        subset_in_zone("s1", "nowhere", **bounds),
        subset_in_zone("s2", "nowhere", **bounds),
        subset_in_zone("s3", "z", minReplicas=1),
    ]
    strategy = adaptive(10, 5, reserves=True)
    await scenario.post(UNITED, united(kind, subsets, replicas=8, strategy=strategy))
    await scenario.manager.settle()
    assert await scenario.sizes() == {"s0": 2, "s1": 2, "s2": 2, "s3": 2}
    await scenario.manager.step(15)
    assert await scenario.sizes() == {"s0": 2, "s1": 2, "s2": 2, "s3": 6}
    status = (await scenario.foo())["status"]
    assert (status["replicas"], status["readyReplicas"], status["reservedPods"]) == (8, 8, 4)
    await scenario.open_zone("nowhere")
    await scenario.manager.step(30)
    assert await scenario.sizes() == {"s0": 2, "s1": 2, "s2": 2, "s3": 2}
    assert "reservedPods" not in (await scenario.foo())["status"]
    assert await scenario.is_at_rest()


async def test_subset_tolerations_are_applied(scenario):
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    await scenario.patch_nodes("y", {"spec": {"taints": [taint]}})
    tolerated = [{"key": "gpu", "operator": "Exists"}]
    subsets = [subset_in_zone("in-x", "x"), subset_in_zone("in-y", "y", tolerations=tolerated)]
    pods = pods_template(tolerations=[{"key": "other", "operator": "Exists"}])
    await scenario.deploy(
        united("Deployment", subsets, replicas=2, template=template_of("Deployment", pods=pods))
    )
    assert await scenario.zones() == {"in-x": ["x"], "in-y": ["y"]}


async def test_deletion_removes_workloads_and_pods(scenario):
    await scenario.deploy(united("Deployment"))
    await scenario.server.delete(f"{UNITED}/foo", {"propagationPolicy": "Background"})
    await scenario.manager.step(60)
    assert await scenario.workloads("Deployment") == []
    assert await scenario.pods() == []
    assert await scenario.revisions() == {}


@pytest.mark.parametrize("spec", [[], 7, {"replicas": "x", "selector": [], "template": 7}])
async def test_malformed_workloads_do_not_affect_others(scenario, spec):
    """Another program may have written these to the store; each is retried by itself."""
    for kind, plural in (("CloneSet", "clonesets"), ("UnitedDeployment", "uniteddeployments")):
        metadata = {"name": "bad", "namespace": "default", "uid": f"uid-of-bad-{plural}"}
        tree = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
        key = f"/registry/apps.kruise.io/{plural}/default/bad".encode()
        result = await scenario.server.server.registry.kv.put(Put(key=key, value=orjson.dumps(tree)))
        await scenario.server.server.registry.watch_cache.wait_reached(result.revision)
        path = f"/apis/apps.kruise.io/v1alpha1/namespaces/default/{plural}/bad"
        assert (await scenario.read(path))["spec"] == spec
    await scenario.deploy(united("CloneSet", SPREAD))
    assert await scenario.zones() == {"in-x": ["x"], "in-y": ["y"], "in-z": ["z"]}
