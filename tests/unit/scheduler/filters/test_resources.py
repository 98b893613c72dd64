"""Nodes without room for a pod."""

from functools import partial
from types import SimpleNamespace

import pytest

from mockube.scheduler.config.args import NodeResourcesFitArgs
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.filters.resources import resources_fit
from tests.support.controllers.scheduler_objects import node, pod, rejections, snapshot

GPU = "example.com/gpu"


def rejection(*reasons, is_unresolvable=True):
    return Rejection(reasons, is_unresolvable=is_unresolvable)


@pytest.mark.parametrize(
    ("requests", "running", "expected"),
    [
        pytest.param({"cpu": "3"}, {"cpu": "1"}, None, id="all of it"),
        pytest.param({"cpu": "3001m"}, {"cpu": "1"}, (False, "Insufficient cpu"), id="a millicore less"),
        pytest.param({"cpu": "4"}, {"cpu": "1"}, (False, "Insufficient cpu"), id="preemption helps"),
        pytest.param({"cpu": "4001m"}, {}, (True, "Insufficient cpu"), id="larger than the node"),
        pytest.param({"cpu": "0"}, {"cpu": "5"}, None, id="no request on a full node"),
        pytest.param({GPU: "1"}, {}, (True, f"Insufficient {GPU}"), id="a resource that the node lacks"),
        pytest.param({GPU: "0"}, {}, None, id="none of a resource that the node lacks"),
        pytest.param(
            {"cpu": "4", "memory": "9Gi"},
            {"cpu": "1"},
            (True, "Insufficient cpu", "Insufficient memory"),
            id="one of two larger than the node",
        ),
    ],
)
def test_node_without_requested_resources_is_rejected(requests, running, expected):
    state = snapshot([node()], [pod("old", requests=running, nodeName="a")])
    found = rejections(resources_fit, pod(requests=requests), state)
    assert found == ({} if expected is None else {"a": rejection(*expected[1:], is_unresolvable=expected[0])})


@pytest.mark.parametrize(("pods", "is_full"), [("2", False), ("1", True)])
def test_node_with_maximum_of_pods_is_rejected(pods, is_full):
    state = snapshot([node(pods=pods)], [pod("old", nodeName="a")])
    full = {"a": rejection("Too many pods", is_unresolvable=False)}
    assert rejections(resources_fit, pod(), state) == (full if is_full else {})


@pytest.mark.parametrize(("minor", "is_unresolvable"), [("1.34", True), ("1.33", False)])
def test_preemption_is_tried_for_any_lack_of_resources_before_1_34(minor, is_unresolvable):
    found = rejections(resources_fit, pod(requests={"cpu": "5"}), snapshot([node()], minor=minor))
    assert found["a"].is_unresolvable is is_unresolvable


def test_devices_provide_resource_on_nodes_that_do_not_have_it():
    nodes = [node(), node("b", status={"allocatable": {"pods": "9", GPU: "1"}})]
    state = snapshot(nodes, devices=SimpleNamespace(extended_classes={GPU: "class"}))
    assert [*rejections(resources_fit, pod(requests={GPU: "2"}), state)] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "is_ignored"),
    [
        ({"ignored_resources": ("example.com/gpu",)}, True),
        ({"ignored_resource_groups": ("example.com",)}, True),
        ({"ignored_resource_groups": ("com",)}, False),
        ({"ignored_resources": ("cpu",)}, False),
    ],
)
def test_ignored_extended_resources_are_not_checked(arguments, is_ignored):
    check = partial(resources_fit, args=NodeResourcesFitArgs(**arguments))
    gpu = pod(requests={"example.com/gpu": "1"})
    assert bool(rejections(check, gpu, snapshot([node()]))) != is_ignored
    assert rejections(check, pod(requests={"cpu": "9"}), snapshot([node()]))
