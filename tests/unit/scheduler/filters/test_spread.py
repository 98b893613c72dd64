"""Nodes where a pod would exceed the maximum skew of its topology spread constraints."""

import pytest

from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.filters.spread import topology_spread
from tests.support.controllers.scheduler_objects import HOST, info, node, pod, rejections, snapshot
from tests.support.controllers.scheduler_objects import spread_constraint as constraint

SKEW = Rejection(("node(s) didn't match pod topology spread constraints",))
NO_LABEL = Rejection(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), is_unresolvable=True
)
WEB = {"app": "web"}


def web(name, at, **fields):
    return pod(name, **{"labels": WEB, "nodeName": at, **fields})


def rejected(running, *constraints, nodes=None, **fields):
    """Return the rejections of a pod on the nodes a and b of one zone and c of another."""
    nodes = nodes or [node("a", zone="x"), node("b", zone="x"), node("c", zone="y")]
    tried = pod(**{"labels": WEB, "topologySpreadConstraints": [*constraints], **fields})
    return rejections(topology_spread, tried, snapshot(nodes, running))


@pytest.mark.parametrize(
    ("at", "max_skew", "names"),
    [
        pytest.param([], 1, [], id="none yet"),
        pytest.param(["a"], 1, ["a", "b"], id="one in a zone"),
        pytest.param(["a"], 2, [], id="one in a zone with a larger skew"),
        pytest.param(["a", "b"], 2, ["a", "b"], id="two in a zone"),
        pytest.param(["a", "c"], 1, [], id="one in each zone"),
        pytest.param(["a", "c", "c"], 1, ["c"], id="one more in a zone"),
    ],
)
def test_zone_with_too_many_matching_pods_is_rejected(at, max_skew, names):
    running = [web(f"old-{number}", name) for number, name in enumerate(at)]
    assert rejected(running, constraint(maxSkew=max_skew)) == dict.fromkeys(names, SKEW)


@pytest.mark.parametrize(
    ("running", "fields"),
    [
        pytest.param(web("old", "a", labels={"app": "db"}), {}, id="other labels"),
        pytest.param(web("old", "a", namespace="other"), {}, id="other namespace"),
        pytest.param(
            web("old", "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), {}, id="terminating"
        ),
        pytest.param(web("old", "a"), {"labels": {"app": "db"}}, id="one that spreads others only"),
    ],
)
def test_pod_that_does_not_count_allows_another_one(running, fields):
    assert rejected([running], constraint(), **fields) == {}


def test_node_without_topology_label_is_rejected_for_good_and_does_not_count():
    nodes = [node("a", zone="x"), node("lone")]
    assert rejected([web("old", "a")], constraint(), nodes=nodes) == {"lone": NO_LABEL}


def test_node_counts_only_if_it_has_the_labels_of_all_constraints():
    """A second node of the zone has no rack, so that its pod does not count."""
    nodes = [
        node("a", zone="x", labels={"rack": "1"}),
        node("b", zone="x"),
        node("c", zone="y", labels={"rack": "2"}),
    ]
    both = (constraint(), constraint("rack"))
    assert rejected([web("old", "b")], *both, nodes=nodes) == {"b": NO_LABEL}
    assert rejected([web("old", "b")], constraint(), nodes=nodes) == dict.fromkeys("ab", SKEW)


@pytest.mark.parametrize(("minimum", "names"), [(None, []), (2, []), (3, ["a", "b", "c"])])
def test_fewer_domains_than_the_minimum_count_as_an_empty_one(minimum, names):
    running = [web("old-1", "a"), web("old-2", "c")]
    assert rejected(running, constraint(minDomains=minimum)) == dict.fromkeys(names, SKEW)


@pytest.mark.parametrize(("policy", "names"), [(None, []), ("Honor", []), ("Ignore", ["a"])])
def test_nodes_that_pod_does_not_select_are_no_domain_by_default(policy, names):
    nodes = [node("a", zone="x", labels={"disk": "ssd"}), node("c", zone="y")]
    one = constraint(**({} if policy is None else {"nodeAffinityPolicy": policy}))
    found = rejected([web("old", "a")], one, nodes=nodes, nodeSelector={"disk": "ssd"})
    assert found == dict.fromkeys(names, SKEW)


@pytest.mark.parametrize(("policy", "names"), [(None, ["a"]), ("Ignore", ["a"]), ("Honor", [])])
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_tainted_nodes_are_a_domain_by_default(policy, effect, names):
    nodes = [node("a", zone="x"), node("c", zone="y", taints=[{"key": "t", "effect": effect}])]
    one = constraint(**({} if policy is None else {"nodeTaintsPolicy": policy}))
    assert rejected([web("old", "a")], one, nodes=nodes) == dict.fromkeys(names, SKEW)


def test_node_is_a_domain_whose_taints_are_tolerated_or_only_score():
    taints = [{"key": "t", "effect": "NoSchedule"}, {"key": "s", "effect": "PreferNoSchedule"}]
    nodes = [node("a", zone="x"), node("c", zone="y", taints=taints)]
    tolerations = [{"key": "t", "operator": "Exists"}]
    found = rejected(
        [web("old", "a")], constraint(nodeTaintsPolicy="Honor"), nodes=nodes, tolerations=tolerations
    )
    assert found == {"a": SKEW}


@pytest.mark.parametrize(
    ("labels", "names"),
    [({"hash": "1"}, ["a", "b"]), ({"hash": "2"}, []), ({}, ["a", "b"])],
)
def test_match_label_keys_count_pods_with_the_same_values(labels, names):
    """A key that the pod lacks selects nothing more."""
    running = [web("old", "a", labels=WEB | {"hash": "1"})]
    found = rejected(running, constraint(matchLabelKeys=["hash"]), labels=WEB | labels)
    assert found == dict.fromkeys(names, SKEW)


@pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}])
def test_empty_selector_counts_no_pod(selector):
    assert rejected([web("old", "a")], constraint(labelSelector=selector)) == {}


def test_constraint_without_selector_counts_no_pod_even_with_match_label_keys():
    running = [web("old", "a")]
    assert rejected(running, constraint(labelSelector=None)) == {}
    assert rejected(running, constraint(labelSelector=None, matchLabelKeys=["app"])) == {}


def test_first_constraint_that_is_broken_gives_the_reason():
    nodes = [node("a", zone="x"), node("c", zone="y")]
    found = rejected([web("old", "a")], constraint(HOST), constraint("rack"), nodes=nodes)
    assert found == {"a": NO_LABEL, "c": NO_LABEL}
    found = rejected([web("old", "a")], constraint("rack"), constraint(HOST), nodes=nodes)
    assert found == {"a": NO_LABEL, "c": NO_LABEL}


def test_constraints_that_only_score_reject_nothing():
    tried = info(pod(labels=WEB, topologySpreadConstraints=[constraint(action="ScheduleAnyway")]))
    assert topology_spread(tried, snapshot([node()], [web("old", "a")])) is None
