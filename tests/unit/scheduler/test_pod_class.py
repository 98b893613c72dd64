"""The classes of pods: which pods need the reference, and what a class follows. A property test compares them with the reference."""

import pytest

from mockube.scheduler import pod_class
from mockube.scheduler.choice import best_nodes, find_feasible
from mockube.scheduler.cluster import SchedulerCache
from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.pod_class import PodClasses
from tests.support.controllers.scheduler_objects import (
    HOST,
    ZONE,
    apart,
    best_of,
    info,
    near,
    node,
    pod,
    preferred,
    snapshot_of,
    spread_constraint,
    term,
)
from tests.support.controllers.scheduler_profiles import profile_of

WEB = {"app": "web"}
BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
BY_HOST = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["a"]}]}


@pytest.fixture
def cluster():
    cluster = SchedulerCache()
    for name in ("a", "b", "c"):
        cluster.set_node(node(name))
    return cluster


@pytest.fixture
def classes(cluster):
    return PodClasses(cluster)


def find(classes, cluster, tree):
    return classes.find(info(tree), snapshot_of(cluster))


def best(classes, cluster, tree):
    state = snapshot_of(cluster)
    return sorted(one.name for one in best_of(classes.find(info(tree), state), state))


def required(term):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"nodeSelector": {HOST: "a"}}, id="selector of a host"),
        pytest.param({"affinity": required(BY_NAME)}, id="affinity to a name"),
        pytest.param({"affinity": required(BY_HOST)}, id="affinity to a host"),
        pytest.param({"status": {"nominatedNodeName": "a"}}, id="nomination"),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}, id="missing claim"
        ),
        pytest.param(
            {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "disk"}}]}, id="disk of one node"
        ),
    ],
)
def test_pod_that_asks_for_more_than_groups_know_is_left_to_the_reference(classes, cluster, fields):
    assert find(classes, cluster, pod(**fields)) is None
    assert find(classes, cluster, pod()) is not None


def test_nodes_that_share_a_hostname_are_left_to_the_reference(classes, cluster):
    cluster.set_node(node("d", labels={HOST: "a"}))
    assert find(classes, cluster, pod()) is None
    cluster.set_node(node("d"))
    assert find(classes, cluster, pod()) is not None
    cluster.set_node(node("d", labels={HOST: ""}))
    assert find(classes, cluster, pod()) is None
    cluster.remove_node("d")
    assert find(classes, cluster, pod()) is not None


def test_only_feasible_node_is_not_scored(classes, cluster):
    """A score that fails does not keep the pod from it."""
    bound = {"matchExpressions": [{"key": "k", "operator": "Lt", "values": ["x"]}]}
    terms = [{"weight": 1, "preference": bound}]
    tree = pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}})
    with pytest.raises(PluginFailure):
        best(classes, cluster, tree)
    for name in "ab":
        cluster.set_node(node(name, unschedulable=True))
    assert best(classes, cluster, tree) == ["c"]


def test_pods_of_one_signature_have_one_class(classes, cluster):
    first = find(classes, cluster, pod("p", labels=WEB))
    assert find(classes, cluster, pod("q", labels=WEB)) is first
    assert find(classes, cluster, pod("r", labels={"app": "db"})) is not first
    assert find(classes, cluster, pod("s", labels=WEB, namespace="other")) is not first


@pytest.mark.parametrize(
    "fields",
    [
        {"hostUsers": False},
        {"volumes": [{"name": "v", "image": {"reference": "i"}}]},
        {"containers": [{"name": "c", "image": "i", "restartPolicyRules": [{"action": "Restart"}]}]},
    ],
)
def test_pods_that_ask_for_something_else_have_another_class(classes, cluster, fields):
    plain = {"containers": [{"name": "c", "image": "i"}]}
    trees = [pod(name) for name in "pq"]
    for tree, more in zip(trees, ({}, fields), strict=True):
        tree["spec"] |= plain | more
    one, other = (find(classes, cluster, tree) for tree in trees)
    assert one is not other


def test_node_of_the_same_name_replaces_the_one_that_went(classes, cluster):
    find(classes, cluster, pod())
    cluster.remove_node("a")
    cluster.set_node(node("a"))
    state = snapshot_of(cluster)
    nodes = best_of(find(classes, cluster, pod()), state)
    assert sorted(map(id, nodes)) == sorted(map(id, state.nodes))


def test_node_without_hostname_is_another_one_for_constraints_of_hosts(classes, cluster):
    unnamed = node("d")
    del unnamed["metadata"]["labels"][HOST]
    cluster.set_node(unnamed)
    spread = pod(labels=WEB, topologySpreadConstraints=[spread_constraint(HOST)])
    assert best(classes, cluster, spread) == ["a", "b", "c"]
    assert best(classes, cluster, pod()) == ["a", "b", "c", "d"]
    assert best(classes, cluster, pod(labels=WEB, affinity=near(term(HOST, WEB)))) == ["a", "b", "c"]
    assert best(classes, cluster, pod(labels=WEB, affinity=apart(term(HOST, WEB)))) == ["a", "b", "c", "d"]


def test_weight_of_hosts_grows_with_the_number_of_scored_nodes(classes, cluster):
    constraints = [spread_constraint(key, action="ScheduleAnyway") for key in (HOST, "rack")]
    for name in "abcdefg":
        cluster.set_node(node(name, labels={"rack": "1" if name == "a" else "2"}))
    for number, at in enumerate("abbd"):
        cluster.assign_pod(info(pod(f"other-{number}", labels=WEB)), at)
    tree = pod(labels=WEB, topologySpreadConstraints=constraints)
    assert best(classes, cluster, tree) == [*"cefg"]
    tried, state = info(tree), snapshot_of(cluster)
    reference = best_nodes(tried, state, find_feasible(tried, state).feasible)
    assert [one.name for one in reference] == [*"cefg"]


@pytest.mark.parametrize(
    ("fields", "nodes"),
    [
        ({"topologySpreadConstraints": [spread_constraint(HOST)]}, "cd"),
        ({"topologySpreadConstraints": [spread_constraint(ZONE)]}, "d"),
        ({"topologySpreadConstraints": [spread_constraint(HOST, action="ScheduleAnyway")]}, "cd"),
        ({"topologySpreadConstraints": [spread_constraint(ZONE, action="ScheduleAnyway")]}, "d"),
        ({"affinity": near(term(HOST, WEB))}, "b"),
        ({"affinity": near(term(ZONE, WEB))}, "bc"),
        ({"affinity": apart(term(HOST, WEB))}, "cd"),
        ({"affinity": apart(term(ZONE, WEB))}, "d"),
        ({"affinity": near(preferred(100, HOST, WEB))}, "a"),
        ({"affinity": apart(preferred(100, ZONE, WEB))}, "d"),
    ],
)
@pytest.mark.parametrize("is_followed", [False, True])
def test_pods_on_nodes_count_by_host_and_zone(fields, nodes, is_followed):
    """From the first decision on, or after changes of nodes and pods that a class follows."""
    cluster = SchedulerCache()
    classes = PodClasses(cluster)
    tree = pod(labels=WEB, requests={"cpu": "10m"}, **fields)
    for before, now in (("edad", "yyyxx"), ("aab", "xxxy")) if is_followed else (("aab", "xxxy"),):
        for name, zone in zip("abcde", now, strict=False):
            cluster.set_node(node(name, zone=zone))
        if len(now) < 5:
            cluster.remove_pod("other-3")
            cluster.remove_node("e")
        for number, at in enumerate(before):
            cluster.assign_pod(info(pod(f"other-{number}", labels=WEB, requests={"cpu": "10m"})), at)
        found = best(classes, cluster, tree)
    assert found == [*nodes]
    tried, state = info(tree), snapshot_of(cluster)
    reference = best_nodes(tried, state, find_feasible(tried, state).feasible)
    assert [one.name for one in reference] == [*nodes]


def test_classes_that_were_used_longest_ago_are_dropped(classes, cluster, monkeypatch):
    monkeypatch.setattr(pod_class, "_MAX_CLASSES", 2)
    first, second = (find(classes, cluster, pod(labels={"app": app})) for app in "ab")
    assert find(classes, cluster, pod(labels={"app": "a"})) is first
    find(classes, cluster, pod(labels={"app": "c"}))
    assert find(classes, cluster, pod(labels={"app": "a"})) is first
    assert find(classes, cluster, pod(labels={"app": "b"})) is not second


def test_nodes_leave_their_group_in_any_order(classes, cluster):
    for name in "defg":
        cluster.set_node(node(name))
    assert best(classes, cluster, pod()) == [*"abcdefg"]
    for name, left in (("a", "bcdefg"), ("g", "bcdef"), ("f", "bcde"), ("b", "cde")):
        cluster.remove_node(name)
        assert best(classes, cluster, pod()) == [*left]
    for name in "cde":
        cluster.set_node(node(name, unschedulable=True))
    assert best(classes, cluster, pod()) == []
    cluster.set_node(node("d"))
    assert best(classes, cluster, pod()) == ["d"]


def test_states_that_no_node_has_any_more_are_forgotten(classes, cluster, monkeypatch):
    monkeypatch.setattr(pod_class, "_MAX_STATES", 5)
    tree = pod(requests={"cpu": "500m"})
    for cpu in range(5, 30):
        cluster.set_node(node("a", cpu=str(cpu)))
        assert best(classes, cluster, tree) == ["a"]
    assert find(classes, cluster, tree).remembered_states <= 3 + 5


@pytest.mark.parametrize("plugin", ["NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", "NodePorts"])
def test_filter_of_which_only_the_prefilter_is_on_tells_no_nodes_apart(classes, cluster, plugin):
    profile = profile_of({"plugins": {"filter": {"disabled": [{"name": plugin}]}}})
    tried = info(pod(labels=WEB, topologySpreadConstraints=[spread_constraint(HOST)]))
    assert classes.find(tried, snapshot_of(cluster), profile) is not None


def test_forgotten_classes_are_made_again(classes, cluster):
    first = find(classes, cluster, pod())
    classes.forget()
    assert find(classes, cluster, pod()) is not first
