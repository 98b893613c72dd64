"""Which nodes are feasible, which of them is the best, and what the message says if there is none."""

import pytest
from msgspec.structs import replace

from mockube.scheduler.choice import (
    FeasibleNodes,
    best_nodes,
    diagnosis,
    find_feasible,
    fit_error_message,
    rejection_on,
    scores_by_plugin,
)
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.profile import ScorePlugin
from mockube.scheduler.profiles import DEFAULT_PROFILE
from tests.support.controllers.scheduler_objects import HOST, info, near, node, pod, snapshot, term

CPU = Rejection(("Insufficient cpu",))


def found(tried, state):
    """Return the names of the feasible nodes, and the reasons and plugins of the others."""
    result = find_feasible(info(tried), state)
    assert result.prefilter_rejection is None
    return [one.name for one in result.feasible], {
        name: (rejection.plugin, *rejection.reasons) for name, rejection in result.rejections.items()
    }


def test_node_is_rejected_by_the_first_filter():
    nodes = [node("a"), node("b", cpu="1", unschedulable=True), node("c", cpu="1")]
    assert found(pod(requests={"cpu": "2"}), snapshot(nodes)) == (
        ["a"],
        {
            "b": ("NodeUnschedulable", "node(s) were unschedulable"),
            "c": ("NodeResourcesFit", "Insufficient cpu"),
        },
    )


def required_name(name):
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    selector = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def test_nodes_that_a_filter_does_not_consider_are_rejected_by_it():
    nodes = [node("a", unschedulable=True), node("b")]
    reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    assert found(pod(affinity=required_name("b")), snapshot(nodes)) == (["b"], {})
    large = pod(affinity=required_name("b"), requests={"cpu": "5"})
    assert found(large, snapshot(nodes)) == (
        [],
        {"a": ("NodeAffinity", reason), "b": ("NodeResourcesFit", "Insufficient cpu")},
    )
    assert find_feasible(info(large), snapshot(nodes)).rejections["a"].is_unresolvable


def test_rejection_of_all_nodes_names_its_plugin():
    tried = info(pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))
    result = find_feasible(tried, snapshot([node("a"), node("b")]))
    missing = Rejection(
        ('persistentvolumeclaim "data" not found',), is_unresolvable=True, plugin="VolumeRestrictions"
    )
    assert (result.feasible, result.rejections) == ((), {"a": missing, "b": missing})
    assert (result.prefilter_rejection, result.plugins, result.is_error) == (
        missing,
        {"VolumeRestrictions"},
        False,
    )
    assert (
        rejection_on(tried, snapshot([node("a")]).nodes[0], snapshot([node("a")]), DEFAULT_PROFILE) == missing
    )


@pytest.mark.parametrize(
    ("nominated", "cpu", "feasible"),
    [("b", "1", ["b"]), ("b", "3", ["a"]), ("gone", "1", ["a", "b"]), ("", "1", ["a", "b"])],
)
def test_nominated_node_is_the_only_one_if_it_is_feasible(nominated, cpu, feasible):
    tried = pod(requests={"cpu": cpu}, status={"nominatedNodeName": nominated})
    assert found(tried, snapshot([node("a"), node("b", cpu="2")]))[0] == feasible


def waiting(name="waiting", *, priority=5, **fields):
    fields = {"requests": {"cpu": "4"}, "status": {"nominatedNodeName": "a"}, **fields}
    return pod(name, priority=priority, **fields)


@pytest.mark.parametrize(
    ("other", "is_feasible"),
    [
        pytest.param(waiting(), False, id="of equal priority"),
        pytest.param(waiting(priority=6), False, id="of higher priority"),
        pytest.param(waiting(priority=4), True, id="of lower priority"),
        pytest.param(waiting("web"), True, id="that is the pod itself"),
        pytest.param(waiting(status={"nominatedNodeName": "b"}), True, id="of another node"),
        pytest.param(waiting(requests={"cpu": "3"}), True, id="with room for both"),
    ],
)
def test_room_of_pods_that_are_nominated_for_node_is_taken(other, is_feasible):
    tried = pod(requests={"cpu": "1"}, priority=5)
    expected = {} if is_feasible else {"a": ("NodeResourcesFit", "Insufficient cpu")}
    assert found(tried, snapshot([node("a")], [other]))[1] == expected


def test_nominated_pods_do_not_help_to_satisfy_affinity():
    """A node must be feasible with them and without them: they may never run."""
    labels = {"app": "db"}
    db = waiting(labels=labels, requests={})
    reason = "node(s) didn't match pod affinity rules"
    tried = pod(affinity=near(term(HOST, labels)), priority=5)
    assert found(tried, snapshot([node("a")], [db]))[1] == {"a": ("InterPodAffinity", reason)}


def test_best_nodes_have_the_highest_sum_of_weighted_scores():
    """The taint weighs 3, the affinity 2."""
    preference = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]}
    tried = info(pod(affinity={"nodeAffinity": affinity}))
    taints = [{"key": "t", "effect": "PreferNoSchedule"}]
    state = snapshot([node("a", taints=taints, labels={"disk": ""}), node("b"), node("c")])
    weighted = scores_by_plugin(tried, state, state.nodes)
    assert weighted["TaintToleration"] == [0, 300, 300]
    assert weighted["NodeAffinity"] == [200, 0, 0]
    assert weighted["NodeResourcesFit"][0] < 100
    assert "ImageLocality" not in weighted
    assert [one.name for one in best_nodes(tried, state, state.nodes)] == ["b", "c"]
    assert [one.name for one in best_nodes(tried, state, state.nodes[:1])] == ["a"]


def test_all_nodes_are_the_best_if_nothing_is_scored():
    state = snapshot([node("a"), node("b")])
    assert best_nodes(info(pod()), state, state.nodes, replace(DEFAULT_PROFILE, scores=())) == state.nodes


def test_only_feasible_node_is_not_scored():
    def fail(*_):
        raise AssertionError

    profile = replace(DEFAULT_PROFILE, scores=(ScorePlugin("Failing", fail, 1),))
    state = snapshot([node("a")])
    assert best_nodes(info(pod()), state, state.nodes, profile) == state.nodes


UNSCHEDULABLE = Rejection(("node(s) were unschedulable",))


@pytest.mark.parametrize(
    ("rejections", "message"),
    [
        (
            [CPU, UNSCHEDULABLE, CPU],
            "0/9 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.",
        ),
        (
            [Rejection(("Too many pods", "Insufficient cpu")), CPU],
            "0/9 nodes are available: 1 Too many pods, 2 Insufficient cpu.",
        ),
        ([], "0/9 nodes are available:"),
    ],
)
def test_message_counts_reasons_in_order(rejections, message):
    assert fit_error_message(rejections, 9) == message


@pytest.mark.parametrize(
    ("feasible_nodes", "nodes", "message"),
    [
        (FeasibleNodes(()), 0, "no nodes available to schedule pods"),
        (FeasibleNodes((), {"a": CPU}), 1, "0/1 nodes are available: 1 Insufficient cpu."),
        (FeasibleNodes((), {"a": CPU}, CPU), 7, "0/7 nodes are available: Insufficient cpu."),
        (FeasibleNodes((), {}, Rejection(("broken",), is_error=True)), 7, "broken"),
    ],
)
def test_diagnosis_of_pod_without_feasible_node(feasible_nodes, nodes, message):
    assert diagnosis(feasible_nodes, nodes) == message


def test_pod_that_an_unknown_plugin_rejected_may_be_helped_by_anything():
    known, unknown = CPU._replace(plugin="NodeResourcesFit"), CPU
    assert FeasibleNodes((), {"a": known}).plugins == {"NodeResourcesFit"}
    assert FeasibleNodes((), {"a": known, "b": unknown}).plugins == frozenset()
