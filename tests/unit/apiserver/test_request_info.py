"""The request info of URLs: a table of all path shapes."""

import pytest

from mockube.apiserver.request_info import RequestInfo, parse


def resource(verb, group="", version="v1", **rest):
    return {"verb": verb, "group": group, "version": version, **rest}


NS_A = {"namespace": "a"}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/nodes", resource("list", resource="nodes")),
        ("POST", "/api/v1/nodes", resource("create", resource="nodes")),
        ("DELETE", "/api/v1/nodes", resource("deletecollection", resource="nodes")),
        ("GET", "/api/v1/nodes/n", resource("get", resource="nodes", name="n")),
        ("HEAD", "/api/v1/nodes/n", resource("get", resource="nodes", name="n")),
        (
            "PUT",
            "/api/v1/nodes/n/status",
            resource("update", resource="nodes", name="n", subresource="status"),
        ),
        ("GET", "/api/v1/namespaces", resource("list", resource="namespaces")),
        ("GET", "/api/v1/namespaces/a", resource("get", resource="namespaces", name="a", **NS_A)),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            resource("update", resource="namespaces", name="a", subresource="finalize", **NS_A),
        ),
        ("GET", "/api/v1/namespaces/a/pods", resource("list", resource="pods", **NS_A)),
        ("PATCH", "/api/v1/namespaces/a/pods/p", resource("patch", resource="pods", name="p", **NS_A)),
        (
            "POST",
            "/api/v1/namespaces/a/pods/p/eviction",
            resource("create", resource="pods", name="p", subresource="eviction", **NS_A),
        ),
        (
            "GET",
            "/api/v1/namespaces/a/services/s/proxy/x/y",
            resource("get", resource="services", name="s", subresource="proxy", rest=("x", "y"), **NS_A),
        ),
        ("GET", "/apis/apps/v1/deployments", resource("list", "apps", resource="deployments")),
        (
            "GET",
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            resource("get", "apps", resource="deployments", name="d", subresource="scale", **NS_A),
        ),
        ("GET", "/api/v1/watch/pods", resource("watch", resource="pods", prefix="watch")),
        (
            "GET",
            "/api/v1/watch/namespaces/a/pods/p",
            resource("watch", resource="pods", name="p", prefix="watch", **NS_A),
        ),
        ("GET", "/api/v1/watch", {"verb": "watch", "is_complete": False}),
        (
            "POST",
            "/api/v1/proxy/nodes/n/x/y",
            resource("proxy", resource="nodes", name="n", rest=("x", "y"), prefix="proxy"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_resource_paths_are_parsed(method, path, expected):
    assert parse(method, path, watch=False) == RequestInfo(path=path, is_resource=True, **expected)


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/version", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"]
)
def test_non_resource_paths_are_parsed(path):
    assert parse("GET", path, watch=False) == RequestInfo(path=path, verb="get")


def test_list_with_watch_parameter_is_a_watch():
    assert parse("GET", "/api/v1/pods", watch=True).verb == "watch"
    assert parse("GET", "/api/v1/namespaces/a/pods/p", watch=True).verb == "get"
