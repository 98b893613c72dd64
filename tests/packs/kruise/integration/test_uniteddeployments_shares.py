"""UnitedDeployments' subset sizes, node placement and validation, with a server and a whole manager."""

import pytest

from tests.packs.kruise.support.united_scenarios import UNITED, united_scenario
from tests.packs.kruise.support.uniteddeployments import KINDS, pods_template, subset, template_of, united

of_each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
async def scenario():
    async with united_scenario() as scenario:
        yield scenario


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
async def test_percentages_follow_total(scenario, kind, subsets, shares):
    first, *_ = shares
    await scenario.deploy(united(kind, subsets, replicas=first))
    for total, expected in shares.items():
        await scenario.scale(total)
        await scenario.until(scenario.is_rolled_out)
        assert [size for _, size in sorted((await scenario.sizes()).items())] == expected
        pods = [scenario.subset_of(pod) for pod in await scenario.pods()]
        assert [pods.count(one["name"]) for one in subsets] == expected
    assert await scenario.is_at_rest()


@of_each_kind
async def test_unsatisfiable_replicas_change_nothing(scenario, kind):
    await scenario.deploy(united(kind, [subset("a", replicas=6), subset("b", replicas=6)], replicas=12))
    await scenario.scale(14)
    await scenario.manager.step(30)
    assert await scenario.sizes() == {"a": 6, "b": 6}
    problem = "specified subsets' replica (12) is less than UnitedDeployment replica (14)"
    event_messages = {
        message for reason, message in await scenario.messages() if reason == "Failed SpecifySubsetReplicas"
    }
    assert event_messages == {f"Specified subset replicas is ineffective: {problem}"}
    foo = await scenario.foo()
    assert foo["status"]["observedGeneration"] < foo["metadata"]["generation"]
    await scenario.scale(12)
    await scenario.until(scenario.is_rolled_out)


# --- node placement

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
async def test_subset_node_terms_are_required_besides_others(scenario, kind, affinity, expected):
    (node,) = await scenario.items("/api/v1/nodes")
    await scenario.patch_node(node, {"metadata": {"labels": {"node-name": "nodeA"}}})
    template = template_of(kind, pods=pods_template(**affinity))
    await scenario.deploy(united(kind, [ON_NODE_A], replicas=1, template=template))
    (workload,) = await scenario.workloads(kind)
    (pod,) = await scenario.pods()
    assert workload["spec"]["template"]["spec"]["affinity"] == pod["spec"]["affinity"] == expected


def tolerations_of(*keys):
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


@of_each_kind
async def test_subset_tolerations_are_appended_once(scenario, kind):
    template = template_of(kind, pods=pods_template(tolerations=tolerations_of("t0")))
    subsets = [subset("a", tolerations=tolerations_of("t1", "t2")), subset("b")]
    await scenario.deploy(united(kind, subsets, replicas=2, template=template))
    found = {scenario.subset_of(it): it["spec"]["template"]["spec"] for it in await scenario.workloads(kind)}
    assert found["a"]["tolerations"] == tolerations_of("t0", "t1", "t2")
    assert found["b"]["tolerations"] == tolerations_of("t0")
    changed = {"subsets": [subset("a", tolerations=tolerations_of("t9", "t2")), subset("b")]}
    answer = await scenario.server.patch(f"{UNITED}/foo", {"spec": {"topology": changed}})
    assert answer.status == 422
    assert answer.body["message"] == (
        'admission webhook "vuniteddeployment.kb.io" denied the request: spec.topology.subsets[0].tolerations: '
        "Forbidden: may not be changed in an update"
    )
