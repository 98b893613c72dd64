"""Who counts as a part of the cluster."""

import pytest

from mockube.apimachinery.groups import PODS
from mockube.explanations.facts import (
    NOT_SET,
    REFUSED,
    DryRun,
    Facts,
    Member,
    NotCollected,
    ObjectNamed,
    ObjectsOf,
    event_time,
    is_component,
    value_at,
)
from tests.support.explained import NOW


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("system:kube-controller-manager", True),
        ("system:node:node-1", True),
        ("system:serviceaccount:kube-system:job-controller", True),
        ("system:serviceaccount:shop:operator", False),
        ("system:anonymous", False),
        ("alice", False),
        ("", False),
    ],
)
def test_component_is_no_user_of_the_cluster(user, expected):
    assert is_component(user) is expected


SPEC = {
    "containers": [1, {"name": "a", "image": "x"}, {"name": "b", "image": None}],
    "conditions": [{"type": "Ready"}],
    "taints": [{"key": "team"}],
}


@pytest.mark.parametrize(
    ("tree", "path", "value"),
    [
        (None, (), NOT_SET),
        (None, ("containers",), NOT_SET),
        (SPEC, (), SPEC),
        (SPEC, ("containers", Member("a"), "image"), "x"),
        (SPEC, ("containers", Member("b"), "image"), None),
        (SPEC, ("containers", Member("c"), "image"), NOT_SET),
        (SPEC, ("containers", "image"), NOT_SET),
        (SPEC, ("conditions", Member("Ready")), {"type": "Ready"}),
        (SPEC, ("taints", Member("team")), {"key": "team"}),
        (SPEC, ("volumes",), NOT_SET),
        (SPEC, (Member("containers"),), NOT_SET),
    ],
)
def test_value_of_a_field(tree, path, value):
    assert value_at(tree, path) is value or value_at(tree, path) == value


SCALE = DryRun(verb="patch", kind="Deployment", subresource="scale", namespace="a", name="web")


def test_unreadable_fact_is_named_once_and_a_request_that_was_only_tried_is_not():
    answers = dict.fromkeys((ObjectsOf(PODS, "a"), SCALE, ObjectNamed(PODS, "a", "b")), REFUSED)
    facts = Facts(NOW, None, {**answers, ObjectsOf(PODS): ()})
    assert facts.unreadable == ["list pods in the namespace a", "get pods b in the namespace a"]
    with pytest.raises(NotCollected, match=r"^list pods in the namespace b$"):
        facts.list(PODS, "b")


def test_request_that_is_tried_is_named_with_its_subresource():
    assert str(SCALE) == "patch deployment/scale web in the namespace a"
    assert str(DryRun(verb="delete", kind="Node", name="a")) == "delete node a"


@pytest.mark.parametrize(
    ("event", "time"),
    [
        ({"series": {"lastObservedTime": "4"}, "lastTimestamp": "3", "eventTime": "2"}, "4"),
        ({"lastTimestamp": "3", "eventTime": "2"}, "3"),
        ({"lastTimestamp": None, "eventTime": "2", "metadata": {"creationTimestamp": "1"}}, "2"),
        ({"metadata": {"creationTimestamp": "1"}}, "1"),
        ({}, ""),
    ],
)
def test_last_time_of_an_event(event, time):
    assert event_time(event) == time
