"""Which requests match the criteria."""

import pytest

from mockube.apiserver.control.matching import CONTROLLERS, Match
from mockube.apiserver.request_info import parse

EVICTION = ("POST", "/api/v1/namespaces/shop/pods/web-1/eviction")
SCALE = ("GET", "/apis/apps/v1/namespaces/shop/deployments/web/scale")
NODES = ("GET", "/api/v1/nodes")
VERSION = ("GET", "/version")


@pytest.mark.parametrize(
    ("request_line", "criteria", "meant"),
    [
        pytest.param(EVICTION, {}, True, id="everything"),
        pytest.param(EVICTION, {"resource": "pods"}, False, id="a subresource is not its resource"),
        pytest.param(EVICTION, {"resource": "pods/eviction"}, True, id="a subresource"),
        pytest.param(EVICTION, {"resource": "pods*"}, True, id="resource and its subresources"),
        pytest.param(SCALE, {"resource": "deployments.apps/scale"}, True, id="with its group"),
        pytest.param(SCALE, {"resource": "deployments.extensions/scale"}, False, id="of another group"),
        pytest.param(EVICTION, {"verbs": ("update", "create")}, True, id="one of several verbs"),
        pytest.param(NODES, {"verbs": ("list",), "namespace": ""}, True, id="in no namespace"),
        pytest.param(NODES, {"namespace": "shop"}, False, id="in another namespace"),
        pytest.param(VERSION, {"verbs": ("get",)}, False, id="a verb is of resources"),
        pytest.param(VERSION, {"namespace": ""}, False, id="a namespace as well"),
        pytest.param(VERSION, {"path": "/version"}, True, id="a path"),
        pytest.param(NODES, {"user": "alice", "agent": "kubectl"}, True, id="user and agent"),
        pytest.param(NODES, {"agent": "*v1.36*"}, True, id="pattern of the agent"),
        pytest.param(NODES, {"agent": "helm"}, False, id="other agent"),
        pytest.param(NODES, {"user": "bob"}, False, id="another user"),
    ],
)
def test_requests_match_criteria(request_line, criteria, meant):
    method, path = request_line
    info = parse(method, path, watch=False)
    assert Match(**criteria).matches("alice", "kubectl/v1.36.3 (linux)", info) is meant


def test_controllers_match_only_by_user():
    info = parse(*NODES, watch=False)
    assert not Match().matches(CONTROLLERS, "", info)
    assert Match(user="*").matches(CONTROLLERS, "", info)


@pytest.mark.parametrize(
    ("pattern", "node", "is_selected"),
    [("node-1", "node-1", True), ("node-1", "node-10", False), ("node-*", "node-10", True), ("*", "", False)],
)
def test_node_is_selected_by_pattern(pattern, node, is_selected):
    assert Match(node=pattern).matches_node(node) is is_selected
