"""Nodes that are rejected by required pod affinity and anti-affinity."""

import pytest

from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.filters.pod_affinity import inter_pod_affinity
from tests.support.controllers.scheduler_objects import (
    HOST,
    ZONE,
    apart,
    info,
    near,
    node,
    pod,
    preferred,
    rejections,
    snapshot,
    term,
)

AFFINITY = Rejection(("node(s) didn't match pod affinity rules",), is_unresolvable=True)
ANTI_AFFINITY = Rejection(("node(s) didn't match pod anti-affinity rules",))
EXISTING_ANTI_AFFINITY = Rejection(("node(s) didn't satisfy existing pods anti-affinity rules",))
NODES = (node("a", zone="x"), node("b", zone="x"), node("c", zone="y"), node("lone"))
WEB, DB = {"app": "web"}, {"app": "db"}


def state_of(*pods, **more):
    return snapshot(NODES, pods, **more)


DB_ON_A = pod("db", labels=DB, nodeName="a")


@pytest.mark.parametrize(
    ("affinity", "rejected"),
    [
        pytest.param(near(term(ZONE, DB)), ["c", "lone"], id="in the zone of a pod"),
        pytest.param(near(term(HOST, DB)), ["b", "c", "lone"], id="on the node of a pod"),
        pytest.param(near(term(ZONE, WEB)), ["a", "b", "c", "lone"], id="near a pod that does not exist"),
        pytest.param(near(term(ZONE, DB), term(HOST, DB)), ["b", "c", "lone"], id="both"),
        pytest.param(
            near(term(ZONE, DB), term(ZONE, {"tier": "back"})),
            ["a", "b", "c", "lone"],
            id="near a pod that one term matches",
        ),
        pytest.param(
            near(term(ZONE, DB, namespaces=["other"])), ["a", "b", "c", "lone"], id="in another namespace"
        ),
    ],
)
def test_node_without_pods_that_affinity_matches_is_rejected(affinity, rejected):
    assert rejections(inter_pod_affinity, pod(affinity=affinity), state_of(DB_ON_A)) == dict.fromkeys(
        rejected, AFFINITY
    )


@pytest.mark.parametrize(
    ("running", "rejected"),
    [
        pytest.param([], ["lone"], id="no such pod: any node with the label"),
        pytest.param([pod("old", labels=WEB, nodeName="a")], ["c", "lone"], id="one in a zone"),
        pytest.param([pod("old", labels=WEB, nodeName="lone")], ["lone"], id="one on a node without zone"),
        pytest.param(
            [pod("old", labels=WEB, namespace="other", nodeName="a")], ["lone"], id="one in another namespace"
        ),
    ],
)
def test_first_pod_of_group_that_wants_to_be_together_fits(running, rejected):
    tried = pod(labels=WEB, affinity=near(term(ZONE, WEB)))
    assert [*rejections(inter_pod_affinity, tried, state_of(*running))] == rejected


def test_pod_that_does_not_match_all_of_its_own_terms_is_no_first_of_group():
    tried = pod(labels=WEB, affinity=near(term(ZONE, WEB), term(ZONE, DB)))
    assert [*rejections(inter_pod_affinity, tried, state_of())] == ["a", "b", "c", "lone"]


@pytest.mark.parametrize(
    ("affinity", "rejected"),
    [
        pytest.param(apart(term(ZONE, DB)), ["a", "b"], id="from a zone"),
        pytest.param(apart(term(HOST, DB)), ["a"], id="from a node"),
        pytest.param(apart(term(ZONE, WEB)), [], id="from a pod that does not exist"),
        pytest.param(apart(term(ZONE, WEB), term(HOST, DB)), ["a"], id="by one of two terms"),
        pytest.param(apart(term("rack", DB)), [], id="by a label that no node has"),
    ],
)
def test_node_with_pods_that_anti_affinity_matches_is_rejected(affinity, rejected):
    found = rejections(inter_pod_affinity, pod(affinity=affinity), state_of(DB_ON_A))
    assert found == dict.fromkeys(rejected, ANTI_AFFINITY)


@pytest.mark.parametrize(
    ("affinity", "labels", "rejected"),
    [
        pytest.param(apart(term(ZONE, WEB)), WEB, ["a", "b"], id="by zone"),
        pytest.param(apart(term(ZONE, WEB)), DB, [], id="of others"),
        pytest.param(apart(term(HOST, DB), term(HOST, WEB)), WEB, ["a"], id="by one of two terms"),
        pytest.param(near(term(ZONE, WEB)), WEB, [], id="that is an affinity"),
    ],
)
def test_node_with_pods_whose_anti_affinity_matches_is_rejected(affinity, labels, rejected):
    state = state_of(pod("old", affinity=affinity, nodeName="a"))
    assert rejections(inter_pod_affinity, pod(labels=labels), state) == dict.fromkeys(
        rejected, EXISTING_ANTI_AFFINITY
    )


def test_affinity_is_the_first_reason_and_anti_affinity_of_others_the_last():
    """As upstream: node "c" breaks all three rules, "b" both anti-affinities."""
    hating = pod("old", labels=WEB, affinity=apart(term(ZONE, WEB)))
    running = [
        {**hating, "metadata": {**hating["metadata"], "uid": at}, "spec": {**hating["spec"], "nodeName": at}}
        for at in ("b", "c")
    ]
    affinity = near(term(ZONE, DB)) | apart(term(HOST, WEB))
    tried = pod(labels=WEB, affinity=affinity)
    assert rejections(inter_pod_affinity, tried, state_of(DB_ON_A, *running)) == {
        "a": EXISTING_ANTI_AFFINITY,
        "b": ANTI_AFFINITY,
        "c": AFFINITY,
        "lone": AFFINITY,
    }


def test_pods_without_required_terms_need_no_check():
    preference = apart(preferred(1, ZONE, WEB))
    state = state_of(pod("old", affinity=preference, nodeName="a"))
    assert inter_pod_affinity(info(pod(labels=WEB, affinity=preference)), state) is None
