"""Which requests match the criteria."""

import pytest

from mockube.apiserver.control.matching import CONTROLLERS, Candidate, Match, Matcher
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
    candidate = Candidate("alice", "kubectl/v1.36.3 (linux)", parse(method, path, watch=False))
    assert Matcher(Match(**criteria)).matches(candidate) is meant


def test_controllers_match_only_by_user():
    candidate = Candidate(CONTROLLERS, "", parse(*NODES, watch=False))
    assert not Matcher(Match()).matches(candidate)
    assert Matcher(Match(user="*")).matches(candidate)


@pytest.mark.parametrize(
    ("pattern", "node", "is_selected"),
    [("node-1", "node-1", True), ("node-1", "node-10", False), ("node-*", "node-10", True), ("*", "", False)],
)
def test_node_is_selected_by_pattern(pattern, node, is_selected):
    candidate = Candidate("alice", "", parse(*NODES, watch=False), node_of=lambda _: node)
    assert Matcher(Match(node=pattern)).matches(candidate) is is_selected


def test_object_is_looked_up_once_for_all_criteria():
    looked_up = []

    def labels_of(info):
        looked_up.append(info)
        return {"app": "web"}

    candidate = Candidate("alice", "", parse(*NODES, watch=False), labels_of)
    matchers = [Matcher(Match(labels=selector)) for selector in ("app=web", "app", "app in (shop)")]
    assert [matcher.matches(candidate) for matcher in matchers] == [True, True, False]
    assert len(looked_up) == 1


@pytest.mark.parametrize("criterion", ["user", "agent", "resource", "namespace", "name", "path", "node"])
def test_pattern_that_is_too_long_is_refused_before_it_is_compared(criterion):
    with pytest.raises(ValueError, match="a pattern has at most 512 characters"):
        Match(**{criterion: "*a" * 5_001}).check()
