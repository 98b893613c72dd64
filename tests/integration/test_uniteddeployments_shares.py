"""Who gets how many pods, where they may be, and what is refused, with a server and a whole manager."""

import pytest

from tests.support.controllers.united_stories import UNITED, united_story
from tests.support.controllers.uniteddeployments import KINDS, pods_template, subset, template_of, united

of_each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
async def story():
    async with united_story() as story:
        yield story


@pytest.mark.parametrize(
    ("subsets", "shares"),
    [
        pytest.param(
            [subset("a", replicas="25%"), subset("b", replicas="25%"), subset("c")],
            {3: [1, 1, 1], 4: [1, 1, 2], 1: [0, 0, 1]},
            id="percentages",
        ),
        pytest.param(
            [*(subset(name, minReplicas=2, maxReplicas=5) for name in "abcd"), subset("e", minReplicas=2)],
            {10: [2, 2, 2, 2, 2], 14: [5, 3, 2, 2, 2], 5: [2, 2, 1, 0, 0]},
            id="bounds",
        ),
    ],
)
@of_each_kind
async def test_percentages_follow_total(story, kind, subsets, shares):
    first, *_ = shares
    await story.deploy(united(kind, subsets, replicas=first))
    for total, expected in shares.items():
        await story.scale(total)
        await story.until(story.is_rolled_out)
        assert [size for _, size in sorted((await story.sizes()).items())] == expected
        pods = [story.subset_of(pod) for pod in await story.pods()]
        assert [pods.count(one["name"]) for one in subsets] == expected
    assert await story.is_at_rest()


@of_each_kind
async def test_unsatisfiable_replicas_change_nothing(story, kind):
    await story.deploy(united(kind, [subset("a", replicas=6), subset("b", replicas=6)], replicas=12))
    await story.scale(14)
    await story.manager.step(30)
    assert await story.sizes() == {"a": 6, "b": 6}
    problem = "specified subsets' replica (12) is less than UnitedDeployment replica (14)"
    said = {message for reason, message in await story.messages() if reason == "Failed SpecifySubsetReplicas"}
    assert said == {f"Specified subset replicas is ineffective: {problem}"}
    foo = await story.foo()
    assert foo["status"]["observedGeneration"] < foo["metadata"]["generation"]
    await story.scale(12)
    await story.until(story.is_rolled_out)


# --- where pods may be

NODE_A = {"key": "node-name", "operator": "In", "values": ["nodeA"]}
ON_NODE_A = subset("a", nodeSelectorTerm={"matchExpressions": [NODE_A]})
TESTED = {"key": "test", "operator": "In", "values": ["a"]}
NAMED = {"key": "kubernetes.io/hostname", "operator": "Exists"}


def requiring(*terms):
    required = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param({}, requiring([NODE_A]), id="nothing else"),
        pytest.param(
            {"affinity": requiring([TESTED, NAMED], [NAMED])},
            requiring([TESTED, NAMED, NODE_A], [NAMED, NODE_A]),
            id="two other terms",
        ),
    ],
)
@of_each_kind
async def test_subset_node_terms_are_required_besides_others(story, kind, affinity, expected):
    (node,) = await story.items("/api/v1/nodes")
    await story.patch_node(node, {"metadata": {"labels": {"node-name": "nodeA"}}})
    template = template_of(kind, pods=pods_template(**affinity))
    await story.deploy(united(kind, [ON_NODE_A], replicas=1, template=template))
    (workload,) = await story.workloads(kind)
    (pod,) = await story.pods()
    assert workload["spec"]["template"]["spec"]["affinity"] == pod["spec"]["affinity"] == expected


def tolerated(*keys):
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


@of_each_kind
async def test_subset_tolerations_are_appended_once(story, kind):
    template = template_of(kind, pods=pods_template(tolerations=tolerated("t0")))
    subsets = [subset("a", tolerations=tolerated("t1", "t2")), subset("b")]
    await story.deploy(united(kind, subsets, replicas=2, template=template))
    found = {story.subset_of(it): it["spec"]["template"]["spec"] for it in await story.workloads(kind)}
    assert found["a"]["tolerations"] == tolerated("t0", "t1", "t2")
    assert found["b"]["tolerations"] == tolerated("t0")
    changed = {"subsets": [subset("a", tolerations=tolerated("t9", "t2")), subset("b")]}
    answer = await story.server.patch(f"{UNITED}/foo", {"spec": {"topology": changed}})
    assert answer.status == 422
    assert answer.body["message"] == (
        'admission webhook "vuniteddeployment.kb.io" denied the request: spec.topology.subsets[0].tolerations: '
        "Forbidden: may not be changed in an update"
    )
