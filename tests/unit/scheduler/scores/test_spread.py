"""The scores of topology spread constraints, and of the default ones for Services and controllers."""

import math

import pytest

from mockube.scheduler.scores.spread import topology_spread_score
from mockube.scheduler.workload_selector import Workloads
from tests.support.controllers.scheduler_objects import (
    HOST,
    ZONE,
    node,
    pod,
    scores,
    snapshot,
    spread_constraint,
    store_of,
)

WEB = {"app": "web"}
NODES = (node("a", zone="x"), node("b", zone="x"), node("c", zone="y"))


def constraint(key=ZONE, action="ScheduleAnyway", **fields):
    return spread_constraint(key, action, **fields)


def web(name, at, **fields):
    return pod(name, **{"labels": WEB, "nodeName": at, **fields})


def scored(running, *constraints, nodes=NODES, feasible=None, **fields):
    tried = pod(**{"labels": WEB, "topologySpreadConstraints": [*constraints], **fields})
    return scores(topology_spread_score, tried, snapshot(nodes, running), feasible)


def normalized(*raw):
    """Return the scores of upstream's formula: the node with the fewest pods is the best."""
    raw = [math.floor(value + 0.5) for value in raw]
    return {
        name: 100 * (max(raw) + min(raw) - value) // max(raw) for name, value in zip("abc", raw, strict=False)
    }


def weight(domains):
    return math.log(domains + 2)


@pytest.mark.parametrize(
    ("at", "constraints", "expected"),
    [
        pytest.param("", [constraint()], {"a": 100, "b": 100, "c": 100}, id="no pods"),
        pytest.param("a", [constraint()], {"a": 0, "b": 0, "c": 100}, id="a pod in a zone"),
        pytest.param(
            "aac", [constraint()], normalized(2 * weight(2), 2 * weight(2), weight(2)), id="by zone"
        ),
        pytest.param("aab", [constraint(HOST)], normalized(2 * weight(3), weight(3), 0), id="by node"),
        pytest.param(
            "aac",
            [constraint(maxSkew=4)],
            normalized(2 * weight(2) + 3, 2 * weight(2) + 3, weight(2) + 3),
            id="a larger skew levels the scores",
        ),
        pytest.param(
            "aabc",
            [constraint(), constraint(HOST, maxSkew=2)],
            normalized(
                3 * weight(2) + 2 * weight(3) + 1, 3 * weight(2) + weight(3) + 1, weight(2) + weight(3) + 1
            ),
            id="both",
        ),
    ],
)
def test_node_with_fewer_matching_pods_scores_higher(at, constraints, expected):
    running = [web(f"old-{number}", name) for number, name in enumerate(at)]
    assert scored(running, *constraints) == expected


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(web("old", "a", labels={"app": "db"}), id="other labels"),
        pytest.param(web("old", "a", namespace="other"), id="other namespace"),
        pytest.param(
            web("old", "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), id="terminating"
        ),
    ],
)
@pytest.mark.parametrize("key", [ZONE, HOST])
def test_pod_that_does_not_match_does_not_count(other, key):
    assert scored([other], constraint(key)) == {"a": 100, "b": 100, "c": 100}


def test_pods_of_nodes_that_are_not_feasible_count_for_their_zone():
    assert scored([web("old", "b")], constraint(), feasible={"a", "c"}) == {"a": 0, "c": 100}


def test_domains_are_those_of_the_feasible_nodes():
    running = [web(f"old-{number}", name) for number, name in enumerate("aac")]
    nodes = (*NODES, node("d", zone="z"))
    expected = normalized(2 * weight(2), 2 * weight(2), weight(2))
    assert scored(running, constraint(), nodes=nodes, feasible={"a", "b", "c"}) == expected


def test_node_without_topology_label_scores_0():
    assert scored([web("old", "a")], constraint(), nodes=(*NODES, node("d"))) == {
        "a": 0,
        "b": 0,
        "c": 100,
        "d": 0,
    }
    assert scored([], constraint(), nodes=[node("d")]) is None


def test_pods_of_node_without_all_topology_labels_do_not_count():
    nodes = [
        node("a", zone="x", labels={"rack": "1"}),
        node("b", zone="x"),
        node("c", zone="y", labels={"rack": "2"}),
    ]
    both = (constraint(), constraint("rack"))
    assert scored([web("old", "b")], *both, nodes=nodes) == {"a": 100, "b": 0, "c": 100}


@pytest.mark.parametrize(
    ("policies", "node_fields", "expected"),
    [
        pytest.param({}, {"labels": {"disk": "hdd"}}, (100, 100), id="not selected"),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore"}, {"labels": {"disk": "hdd"}}, (0, 100), id="selection ignored"
        ),
        pytest.param({}, {"taints": [{"key": "t", "effect": "NoSchedule"}]}, (0, 100), id="tainted"),
        pytest.param(
            {"nodeTaintsPolicy": "Honor"},
            {"taints": [{"key": "t", "effect": "NoSchedule"}]},
            (100, 100),
            id="taints honored",
        ),
    ],
)
def test_pods_of_nodes_count_by_policies_of_constraint(policies, node_fields, expected):
    """The pod runs on another node of the zone of "a", which the pod may not use."""
    nodes = [
        node("a", zone="x", labels={"disk": "ssd"}),
        node("c", zone="y", labels={"disk": "ssd"}),
        node("out", zone="x", **{"labels": {"disk": "ssd"}, **node_fields}),
    ]
    one = constraint(**policies)
    found = scored([web("old", "out")], one, nodes=nodes, feasible={"a", "c"}, nodeSelector={"disk": "ssd"})
    assert found == dict(zip("ac", expected, strict=True))


def test_constraints_that_reject_nodes_score_nothing():
    assert scored([web("old", "a")], constraint(action="DoNotSchedule")) is None


def workloads(*services):
    return Workloads(services=store_of(*services), controllers={})


SERVICE = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": WEB}}


def test_pods_of_service_are_spread_over_nodes_and_zones_by_default():
    """The nodes weigh 3 and the zones 5, as upstream's default constraints."""
    running = [web(f"old-{number}", name) for number, name in enumerate("aab")]
    state = snapshot(NODES, running, workloads=workloads(SERVICE))
    hosts, zones = weight(3), weight(2)
    expected = normalized(2 * hosts + 3 * zones + 6, hosts + 3 * zones + 6, 6)
    assert scores(topology_spread_score, pod(labels=WEB), state) == expected


def test_node_without_zone_is_spread_over_nodes_by_default():
    nodes = [node("a"), node("b")]
    state = snapshot(nodes, [web("old", "a")], workloads=workloads(SERVICE))
    assert scores(topology_spread_score, pod(labels=WEB), state) == normalized(weight(2) + 2, 2)


@pytest.mark.parametrize("labels", [{"app": "db"}, {}])
def test_pod_without_service_or_controller_is_not_spread(labels):
    state = snapshot(NODES, [web("old", "a")], workloads=workloads(SERVICE))
    assert scores(topology_spread_score, pod(labels=labels), state) is None
    assert scores(topology_spread_score, pod(labels=WEB), snapshot(NODES, [web("old", "a")])) is None


def test_own_constraints_replace_the_default_ones():
    state = snapshot(NODES, [web("old", "a")], workloads=workloads(SERVICE))
    tried = pod(labels=WEB, topologySpreadConstraints=[constraint(action="DoNotSchedule")])
    assert scores(topology_spread_score, tried, state) is None
