"""Which pods of lower priority a pod preempts, and on which node."""

import pytest

from mockube.scheduler.choice import FeasibleNodes, find_feasible
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.preemption import find_candidates
from tests.support.controllers.scheduler_objects import HOST, apart, info, node, pod, snapshot, term
from tests.support.controllers.scheduler_profiles import profile_of

CPUS = {"cpu": "4"}


def running(name, at="a", *, priority=1, cpu="1", started=None, **fields):
    status = {"startTime": f"2026-01-01T00:00:{started:02}Z"} if started is not None else {}
    fields = {"nodeName": at, "priority": priority, "labels": {"app": "web"}, "status": status, **fields}
    return pod(name, requests={"cpu": cpu}, **fields)


def budget(allowed=0, *, namespace="default", selector=None, disrupted=(), name="pdb"):
    spec = {"selector": {"matchLabels": {"app": "web"}} if selector is None else selector}
    status = {
        "disruptionsAllowed": allowed,
        "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
    }
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}


def outcome(pods, *budgets, tried, nodes=None):
    state, one = snapshot(nodes or [node()], pods), info(tried)
    return best_of(find_candidates(one, state, find_feasible(one, state), budgets))


def best_of(preemption):
    """Return the best candidate, or why there is none."""
    return preemption.best or preemption.problem


def preempted(pods, *budgets, cpu="4", **more):
    """Return the node and the names of the victims, in their order, of a pod that needs so many CPUs."""
    found = outcome(pods, *budgets, tried=pod(requests={"cpu": cpu}, priority=10), **more)
    return found if isinstance(found, str) else (found.node, [one.view.key.name for one in found.victims])


NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"


@pytest.mark.parametrize(
    ("pods", "cpu", "victims"),
    [
        pytest.param([("one", {})], "4", ["one"], id="the only one"),
        pytest.param([("one", {}), ("two", {})], "3", ["two"], id="as few as possible, the latest"),
        pytest.param(
            [("young", {"started": 9}), ("old", {"started": 1})],
            "3",
            ["young"],
            id="the one that started last",
        ),
        pytest.param(
            [("started", {"started": 9}), ("never", {})], "3", ["never"], id="the one without start"
        ),
        pytest.param(
            [("less", {"priority": 1}), ("more", {"priority": 2})], "3", ["less"], id="of lower priority"
        ),
        pytest.param(
            [("more", {"priority": 2, "cpu": "2"}), ("less", {"priority": 1})],
            "3",
            ["more"],
            id="of higher priority if the other one may stay",
        ),
        pytest.param(
            [("equal", {"priority": 10}), ("less", {})], "3", ["less"], id="never of equal priority"
        ),
        pytest.param(
            [("one", {"started": 1}), ("two", {"started": 2}), ("three", {"priority": 5})],
            "4",
            ["three", "one", "two"],
            id="all, the most important first",
        ),
        pytest.param([("none", {"priority": None}), ("one", {})], "3", ["none"], id="without priority"),
    ],
)
def test_victims_are_the_least_important_pods_that_make_room(pods, cpu, victims):
    found = preempted([running(name, **fields) for name, fields in pods], cpu=cpu)
    assert found == ("a", victims)


def test_larger_pod_is_reprieved_after_the_more_important_one():
    """All are removed, and those are put back that fit, in the order of importance."""
    pods = [
        running("first", cpu="1", started=1),
        running("large", cpu="2", started=2),
        running("last", started=3),
    ]
    assert preempted(pods, cpu="2") == ("a", ["large"])


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param([running("equal", priority=10)], NO_VICTIMS, id="equal priority"),
        pytest.param([running("greater", priority=11)], NO_VICTIMS, id="higher priority"),
        pytest.param(
            [running("equal", priority=10), running("less")], "1 Insufficient cpu", id="not enough room"
        ),
    ],
)
def test_node_without_enough_victims_is_no_candidate(pods, reason):
    expected = reason if reason.startswith("1") else f"1 {reason}"
    assert preempted(pods) == f"0/1 nodes are available: {expected}."


def test_nodes_that_no_eviction_makes_feasible_are_no_candidates():
    nodes = [node("a"), node("b", cpu="1"), node("c", unschedulable=True)]
    pods = [running("equal", priority=10), running("less-b", "b"), running("less-c", "c")]
    assert preempted(pods, nodes=nodes) == f"0/3 nodes are available: 1 {NO_VICTIMS}, 2 {NO_HELP}."


def test_rejection_of_all_nodes_is_not_helped():
    missing = pod(priority=10, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    assert outcome([running("less")], tried=missing) == f"0/1 nodes are available: 1 {NO_HELP}."


def test_pod_that_must_not_preempt_does_not():
    never = pod(requests=CPUS, priority=10, preemptionPolicy="Never")
    assert outcome([running("less")], tried=never) == "not eligible due to preemptionPolicy=Never."


PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def leaving(name="leaving", *, condition=PREEMPTED, deleting=True, **fields):
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}
    return running(name, metadata=metadata, status={"conditions": [condition]}, **fields)


WAITS = "not eligible due to a terminating pod on the nominated node."


@pytest.mark.parametrize(
    ("pods", "nominated", "waits"),
    [
        pytest.param([leaving()], "a", True, id="that was preempted"),
        pytest.param([leaving(), running("staying")], "a", True, id="beside one that stays"),
        pytest.param([leaving()], "b", False, id="on another node"),
        pytest.param([leaving()], "gone", False, id="on a node that is gone"),
        pytest.param([leaving()], None, False, id="without nomination"),
        pytest.param([leaving(priority=10)], "a", False, id="of equal priority"),
        pytest.param([leaving(deleting=False)], "a", False, id="that does not end yet"),
        pytest.param(
            [leaving(condition=PREEMPTED | {"status": "False"})], "a", False, id="whose condition is false"
        ),
        pytest.param(
            [leaving(condition=PREEMPTED | {"reason": "EvictionByEvictionAPI"})],
            "a",
            False,
            id="evicted otherwise",
        ),
    ],
)
def test_pod_waits_for_its_victims_on_the_nominated_node(pods, nominated, waits):
    """The terminating pod still has its CPUs, so that the pod does not fit."""
    tried = pod(requests=CPUS, priority=10, status={"nominatedNodeName": nominated} if nominated else {})
    nodes = [node("a"), node("b")]
    found = outcome([*pods, running("less", "b")], nodes=nodes, tried=tried)
    assert (found == WAITS) is waits


def test_pod_does_not_wait_on_a_node_that_does_not_fit_any_more():
    tried = pod(requests=CPUS, priority=10, status={"nominatedNodeName": "a"})
    nodes = [node("a", unschedulable=True), node("b")]
    found = outcome([leaving(), running("less", "b")], nodes=nodes, tried=tried)
    assert found.node == "b"


# --- budgets


@pytest.mark.parametrize(
    ("budgets", "victims", "violations"),
    [
        pytest.param([], ["young"], 0, id="none"),
        pytest.param([budget(0)], ["young"], 1, id="that allow nothing"),
        pytest.param([budget(1)], ["old"], 0, id="that allow one, which the older one takes"),
        pytest.param([budget(2)], ["young"], 0, id="that allow both"),
        pytest.param([budget(0, selector={"matchLabels": {"n": "2"}})], ["old"], 0, id="of the young one"),
        pytest.param(
            [budget(0, selector={"matchLabels": {"n": "2"}}, namespace="other")], ["young"], 0, id="elsewhere"
        ),
        pytest.param(
            [budget(0, selector={"matchLabels": {"n": "2"}}, disrupted=["young"])],
            ["young"],
            0,
            id="that know of it",
        ),
        pytest.param([budget(0, selector={})], ["young"], 0, id="with an empty selector"),
        pytest.param([{"metadata": budget()["metadata"], "spec": {}}], ["young"], 0, id="without selector"),
    ],
)
def test_pods_whose_budget_would_be_violated_are_reprieved_first(budgets, victims, violations):
    pods = [
        running("old", started=1, labels={"app": "web", "n": "1"}),
        running("young", started=2, labels={"app": "web", "n": "2"}),
    ]
    found = outcome(pods, *budgets, tried=pod(requests={"cpu": "3"}, priority=10))
    assert ([one.view.key.name for one in found.victims], found.pdb_violations) == (victims, violations)


def test_budget_allows_the_most_important_pods_to_be_evicted():
    """Two may be evicted: the third, which is the least important, would violate the budget, and is reprieved first."""
    pods = [running(name, started=number) for number, name in enumerate(("one", "two", "three"))]
    assert preempted(pods[::-1], budget(2), cpu="2") == ("a", ["two"])


def test_pod_without_labels_has_no_budget():
    selector = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    found = outcome(
        [running("bare", labels={})], budget(0, selector=selector), tried=pod(requests=CPUS, priority=10)
    )
    assert found.pdb_violations == 0


# --- the choice of a node


@pytest.mark.parametrize(
    ("on_a", "on_b", "budgets"),
    [
        pytest.param(
            [{"labels": {"app": "web"}}],
            [{"labels": {"app": "db"}, "priority": 9}],
            [budget(0)],
            id="the fewest violations of budgets",
        ),
        pytest.param(
            [{"priority": 3}],
            [{"priority": 2, "cpu": "2"}, {"priority": 2, "cpu": "2"}],
            [],
            id="the lowest highest priority",
        ),
        pytest.param(
            [{"priority": 2, "cpu": "2"}, {"priority": 1, "cpu": "2"}],
            [{"priority": 2, "cpu": "2"}, {"priority": 0, "cpu": "2"}],
            [],
            id="the lowest sum of priorities",
        ),
        pytest.param(
            [{"priority": -5, "cpu": "2"}, {"priority": -5, "cpu": "2"}],
            [{"priority": -5}],
            [],
            id="the lowest sum of negative priorities, which is that of the fewest victims",
        ),
        pytest.param(
            [{"priority": -(2**31), "cpu": "2"}, {"priority": -(2**31), "cpu": "2"}],
            [{"priority": -(2**31)}],
            [],
            id="the fewest victims",
        ),
        pytest.param([{"started": 1}], [{"started": 2}], [], id="the latest start"),
        pytest.param(
            [{"started": 2, "cpu": "2"}, {"started": 1, "cpu": "2"}],
            [{"started": 3, "cpu": "2"}, {"started": 2, "cpu": "2"}],
            [],
            id="the latest start of the earliest",
        ),
        pytest.param(
            [{"priority": 2, "started": 1, "cpu": "2"}, {"started": 9, "cpu": "2"}],
            [{"priority": 2, "started": 2, "cpu": "2"}, {"started": 0, "cpu": "2"}],
            [],
            id="the latest start of those of the highest priority",
        ),
    ],
)
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_better_candidate_is_preferred(on_a, on_b, budgets, order):
    pods = [
        running(f"{at}-{number}", at, **{"cpu": "4", **fields})
        for at, some in (("a", on_a), ("b", on_b))
        for number, fields in enumerate(some)
    ]
    assert preempted(pods, *budgets, nodes=[node(name) for name in order])[0] == "b"


def test_filters_are_evaluated_without_the_victims():
    """Anti-affinity of a victim does not count once it is removed; that of a pod that stays does."""
    labels = {"app": "new"}
    hostile, tried = apart(term(HOST, labels)), pod(labels=labels, priority=10)
    found = outcome([running("hostile", affinity=hostile), running("other")], tried=tried)
    assert [one.view.key.name for one in found.victims] == ["hostile"]
    staying = outcome([running("hostile", affinity=hostile, priority=10), running("other")], tried=tried)
    assert staying == "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."


def test_room_of_nominated_pods_is_not_taken():
    """A pod of equal priority waits for this node, so that its CPUs count."""
    waiting = pod("waiting", requests={"cpu": "2"}, priority=10, status={"nominatedNodeName": "a"})
    pods = [running("one", started=1), running("two", started=2), waiting]
    assert preempted(pods, cpu="1") == ("a", ["two"])
    assert preempted(pods, cpu="2") == ("a", ["one", "two"])


def test_unknown_rejection_of_node_does_not_exclude_it():
    state = snapshot([node()], [running("less")])
    tried = info(pod(requests=CPUS, priority=10))
    found = find_feasible(tried, state)
    assert found.rejections["a"] == Rejection(("Insufficient cpu",), plugin="NodeResourcesFit")
    assert find_candidates(tried, state, found, ()).best.node == "a"


@pytest.mark.parametrize(
    ("absolute", "offset", "chosen"),
    [
        pytest.param(1, 0.0, "a", id="first one"),
        pytest.param(1, 0.5, "c", id="from the middle on"),
        pytest.param(2, 0.5, "d", id="best of two"),
        pytest.param(9, 0.5, "b", id="best of all"),
    ],
)
def test_search_ends_at_the_candidates_of_the_profile(absolute, offset, chosen):
    arguments = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": absolute}
    profile = profile_of({"pluginConfig": [{"name": "DefaultPreemption", "args": arguments}]})
    nodes = [node(name) for name in "abcd"]
    pods = [
        running(name, at=name, cpu="4", priority=priority)
        for name, priority in zip("abcd", (5, 1, 4, 2), strict=True)
    ]
    state, tried = snapshot(nodes, pods), info(pod(requests={"cpu": "4"}, priority=10))
    found = find_candidates(tried, state, find_feasible(tried, state, profile), (), profile, offset).best
    assert found.node == chosen


def test_search_goes_on_until_a_candidate_violates_no_budget():
    arguments = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    profile = profile_of({"pluginConfig": [{"name": "DefaultPreemption", "args": arguments}]})
    pods = [running("a", cpu="4"), running("b", at="b", cpu="4", labels={"app": "db"})]
    state, tried = snapshot([node("a"), node("b")], pods), info(pod(requests={"cpu": "4"}, priority=10))
    found = find_candidates(tried, state, find_feasible(tried, state, profile), [budget()], profile).best
    assert found.node == "b"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("a", 'expected at least one victim pod on node "a"'),
        (
            "ba",
            '[expected at least one victim pod on node "a", expected at least one victim pod on node "b"]',
        ),
    ],
)
def test_node_that_only_an_extender_rejects_is_an_error(names, message):
    pods = [running(f"less-{name}", name) for name in names]
    state, tried = snapshot([node(name) for name in names], pods), info(pod(priority=10))
    rejected = FeasibleNodes((), {name: Rejection((), plugin="Extender") for name in names})
    found = find_candidates(tried, state, rejected, ())
    assert (found.problem, found.is_error, found.keeps_nomination) == (message, True, True)
