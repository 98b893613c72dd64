"""`Cluster.calls` returns the recorded API requests, filtered by criteria."""

import asyncio

import pytest
from kubernetes import client as official

from mockube import Cluster
from mockube.apiserver.control.matching import CONTROLLERS
from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.request_info import parse
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.embedded.calls import CallsDropped, recorded_calls, warn_of_dropped_calls
from mockube.embedded.criteria import match_of
from tests.support.event_loop import until
from tests.support.server.handler_requests import request_of

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""


def test_calls_are_recorded_in_order(cluster):
    cluster.apply(CONFIG_MAP % "a")
    cluster.get("ConfigMap", "a")
    cluster.delete("ConfigMap", "a")
    calls = cluster.calls(resource="configmaps")
    assert [(call.verb, call.name, call.code) for call in calls] == [
        ("patch", "a", 201),
        ("get", "a", 200),
        ("delete", "a", 200),
    ]
    assert {(call.user, call.agent, call.namespace) for call in calls} == {
        ("kubernetes-admin", "mockube", "default")
    }
    assert calls[0].uri == "/api/v1/namespaces/default/configmaps/a?fieldManager=mockube&force=true"
    assert "201 patch /api/v1/namespaces/default/configmaps/a" in repr(calls)


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        pytest.param({"verb": "patch"}, ["web", "a"], id="by verb"),
        pytest.param({"verb": ("get", "patch"), "name": "a"}, ["a", "a"], id="by verbs"),
        pytest.param({"resource": "deployments.apps"}, ["web"], id="by resource and group"),
        pytest.param({"namespace": "def*", "name": "w?b"}, ["web"], id="by patterns"),
        pytest.param({"code": 404}, ["a"], id="by code"),
        pytest.param({"agent": "kubectl"}, [], id="by user agent without calls"),
        pytest.param({"user": "kubernetes-*", "verb": "patch"}, ["web", "a"], id="by user"),
    ],
)
def test_calls_are_filtered_by_criteria(cluster, criteria, names):
    for verb in ("get", "apply"):
        if verb == "apply":
            cluster.apply(DEPLOYMENT)
            cluster.apply(CONFIG_MAP % "a")
        else:
            with pytest.raises(Exception, match="not found"):
                cluster.get("ConfigMap", "a")
    assert [call.name for call in cluster.calls(**criteria)] == names
    cluster.delete("ConfigMap", "a")


def test_calls_of_controllers_are_listed_only_on_request(cluster):
    cluster.apply(DEPLOYMENT.replace("web", "controlled"))
    cluster.wait("Deployment", "controlled", "Available")
    assert cluster.calls(resource="pods", verb="create") == []
    calls = cluster.calls(resource="pods", verb="create", user=CONTROLLERS)
    assert [call.code for call in calls] == [201, 201]
    assert {call.user for call in cluster.calls(user="*")} == {"kubernetes-admin", CONTROLLERS}


def test_controllers_are_limited_to_their_roles(cluster):
    """No request of the controllers is forbidden, and no role of theirs has all permissions."""
    cluster.apply(DEPLOYMENT.replace("web", "allowed"))
    cluster.wait("Deployment", "allowed", "Available")
    cluster.delete("Deployment", "allowed")
    assert [call for call in cluster.calls(user=CONTROLLERS) if call.code == 403] == []
    binding = cluster.get("ClusterRoleBinding", "mockube:manager:controllers")
    assert [subject["name"] for subject in binding["subjects"]] == ["mockube:manager"]
    rules = cluster.get("ClusterRole", "mockube:manager:controllers")["rules"]
    assert any("replicasets" in rule.get("resources", ()) for rule in rules)
    assert not any("impersonate" in rule["verbs"] or rule["verbs"] == ["*"] for rule in rules)


async def test_unanswered_call_has_no_code():
    async with Cluster(nodes=1) as cluster:
        with cluster.inject(verb="get", resource="nodes", delay=600.0) as fault:
            getting = asyncio.create_task(cluster.get("Node", "node-1"))
            await until(lambda: fault.hits)
            assert [call.code for call in cluster.calls(verb="get")] == [None]
        await getting
        assert [call.code for call in cluster.calls(verb="get")] == [200]


def test_non_resource_call_is_found_by_path(cluster):
    assert cluster.calls(path="/version") == []
    official.VersionApi(cluster.kubernetes()).get_code()
    assert [call.verb for call in cluster.calls(path="/version*")] == ["get"]
    assert cluster.calls(verb="get") == []


@pytest.mark.parametrize(
    ("criteria", "problem"),
    [
        pytest.param({"verb": "apply"}, '"apply" is not a verb, must be one of get, list', id="unknown verb"),
        pytest.param(
            {"verb": "get list"}, r'"get list" is not a verb, must be one of', id="two verbs in a text"
        ),
        pytest.param(
            {"verb": ["updat"]}, r'"updat" is not a verb.*: did you mean "update"\?', id="misspelt verb"
        ),
        pytest.param({"verb": "apply"}, r'deletecollection: did you mean "patch"\?', id="verb of kubectl"),
        pytest.param({"verb": "POST"}, r'did you mean "create"\?', id="method of HTTP"),
        pytest.param(
            {"resource": "Pod"},
            r'"Pod" is not a resource: did you mean "pods"\?',
            id="kind instead of resource",
        ),
        pytest.param({"code": 4040}, "code must be from 100 to 599, not 4040", id="no status code"),
        pytest.param({"pod": "a"}, "pod", id="unknown criterion"),
        pytest.param({"name": 5}, "name must be a str, not 5", id="int as name"),
        pytest.param({"verb": 5}, "verb must be a str or a list of str, not 5", id="int as verb"),
        pytest.param({"code": "200"}, "code must be an int, not str", id="text as code"),
    ],
)
def test_invalid_call_criteria_raise_an_error(cluster, criteria, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        cluster.calls(**criteria)


def test_empty_result_names_calls_with_other_verbs(cluster):
    cluster.apply(CONFIG_MAP % "applied")
    cluster.get("ConfigMap", "applied")
    official.VersionApi(cluster.kubernetes()).get_code()
    created = cluster.calls(verb="create", name="applied")
    assert repr(created) == (
        "no calls with the verb create, but with others: 1 get, 1 patch (an apply is a patch)"
    )
    deleted = cluster.calls(verb=("delete", "deletecollection"), name="applied")
    assert (
        repr(deleted) == "no calls with the verb delete or deletecollection, but with others: 1 get, 1 patch"
    )
    assert repr(cluster.calls(verb="create", name="other")) == "no calls"
    assert created == deleted == []
    with pytest.raises(AssertionError, match="1 get, 1 patch"):
        assert len(created) == 1
    cluster.delete("ConfigMap", "applied")


def test_new_cluster_has_no_calls():
    with Cluster(nodes=1) as cluster:
        assert cluster.calls() == []


def test_dropped_calls_raise_a_warning():
    recorder = RequestRecorder(SteppedClock(), max_calls=2)
    for name in ("a", "b", "c"):
        recorder.end(recorder.begin(get_request(name)), 200, 0, 0.0)
    assert [call.name for call in recorded_calls(recorder, match_of({}), None)] == ["b", "c"]
    with pytest.warns(CallsDropped, match="the oldest 1 calls were dropped"):
        warn_of_dropped_calls(recorder.dropped_count)
    recorder.clear()
    warn_of_dropped_calls(recorder.dropped_count)
    assert recorded_calls(recorder, match_of({}), None) == []


def get_request(name):
    info = parse("GET", f"/api/v1/namespaces/default/configmaps/{name}", watch=False)
    request = request_of("GET", info.path)
    request.info, request.user = info, User(name="alice")
    return request
