"""The scores of pod affinity: of the pod's own preferences, and of the terms of the pods that run."""

import pytest

from mockube.scheduler.scores.pod_affinity import pod_affinity_score
from tests.support.controllers.scheduler_objects import (
    HOST,
    ZONE,
    apart,
    near,
    node,
    pod,
    preferred,
    scores,
    snapshot,
    term,
)

WEB, DB = {"app": "web"}, {"app": "db"}
NODES = (node("a", zone="x"), node("b", zone="x"), node("c", zone="y"), node("lone"))


def scored(tried, *running, **more):
    return scores(pod_affinity_score, tried, snapshot(NODES, running, **more))


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(near(preferred(5, ZONE, DB)), (100, 100, 0, 0), id="in a zone"),
        pytest.param(near(preferred(5, HOST, DB)), (100, 0, 0, 0), id="on a node"),
        pytest.param(apart(preferred(5, ZONE, DB)), (0, 0, 100, 100), id="out of a zone"),
        pytest.param(
            near(preferred(30, ZONE, DB), preferred(10, HOST, DB)), (100, 75, 0, 0), id="both by weight"
        ),
        pytest.param(
            near(preferred(20, ZONE, DB)) | apart(preferred(30, HOST, DB)),
            (0, 100, 33, 33),
            id="a zone but not a node",
        ),
        pytest.param(near(preferred(5, ZONE, WEB)), None, id="other labels"),
        pytest.param(near(preferred(5, ZONE, DB, namespaces=["other"])), None, id="other namespace"),
        pytest.param(near(preferred(5, "rack", DB)), None, id="a label that no node has"),
        pytest.param(near(term(ZONE, DB)), None, id="that is required, and so no preference"),
    ],
)
def test_preferences_of_pod_count_by_weight_for_nodes_of_the_domain(own, expected):
    found = scored(pod(affinity=own), pod("old", labels=DB, nodeName="a"))
    assert found == (
        None if expected is None else dict(zip("abc", expected, strict=False)) | {"lone": expected[3]}
    )


@pytest.mark.parametrize(
    ("of_other", "expected"),
    [
        pytest.param(near(preferred(7, ZONE, WEB)), (100, 100, 0, 0), id="prefers the pod"),
        pytest.param(apart(preferred(7, ZONE, WEB)), (0, 0, 100, 100), id="avoids the pod"),
        pytest.param(near(term(ZONE, WEB)), (100, 100, 0, 0), id="requires the pod"),
        pytest.param(near(term(ZONE, DB)), None, id="requires others"),
        pytest.param(apart(term(ZONE, WEB)), None, id="excludes the pod, which is for the filter"),
    ],
)
def test_terms_of_running_pods_count_for_the_pod_that_they_match(of_other, expected):
    found = scored(pod(labels=WEB), pod("old", affinity=of_other, nodeName="a"))
    assert found == (
        None if expected is None else dict(zip("abc", expected, strict=False)) | {"lone": expected[3]}
    )


def test_required_term_of_running_pod_weighs_one():
    others = [
        pod("old-1", affinity=near(term(HOST, WEB)), nodeName="a"),
        pod("old-2", affinity=near(preferred(4, HOST, WEB)), nodeName="b"),
    ]
    assert scored(pod(labels=WEB), *others) == {"a": 25, "b": 100, "c": 0, "lone": 0}


def test_each_matching_pod_counts():
    running = [pod(f"old-{number}", labels=DB, nodeName=at) for number, at in enumerate("aabc")]
    own = near(preferred(1, HOST, DB))
    assert scored(pod(affinity=own), *running) == {"a": 100, "b": 50, "c": 50, "lone": 0}


def test_terms_of_running_pods_count_beside_preferences_of_pod():
    running = [
        pod("old-1", labels=DB, nodeName="a"),
        pod("old-2", affinity=near(preferred(3, HOST, WEB)), nodeName="b"),
    ]
    own = near(preferred(6, HOST, DB))
    assert scored(pod(labels=WEB, affinity=own), *running) == {"a": 100, "b": 50, "c": 0, "lone": 0}


def test_nodes_are_compared_with_the_feasible_ones_only():
    running = [pod("old", labels=DB, nodeName="a")]
    state = snapshot(NODES, running)
    own = near(preferred(30, ZONE, DB), preferred(10, HOST, DB))
    assert scores(pod_affinity_score, pod(affinity=own), state, {"a", "b"}) == {"a": 100, "b": 0}
    assert scores(pod_affinity_score, pod(affinity=own), state, {"b", "c"}) == {"b": 100, "c": 0}
    assert scores(pod_affinity_score, pod(affinity=own), state, {"c", "lone"}) == {"c": 0, "lone": 0}


def test_namespace_selector_of_term_selects_by_labels_of_namespace():
    own = near(preferred(5, HOST, DB, namespaceSelector={"matchLabels": {"team": "blue"}}))
    running = [
        pod("old-1", labels=DB, namespace="blue", nodeName="a"),
        pod("old-2", labels=DB, namespace="red", nodeName="b"),
    ]
    namespaces = {"blue": {"team": "blue"}, "red": {"team": "red"}}
    found = scored(pod(affinity=own), *running, namespaces=namespaces)
    assert found == {"a": 100, "b": 0, "c": 0, "lone": 0}
