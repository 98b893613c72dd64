"""Ingresses choose a backend by host and path."""

import pytest

from mockube.network.ingress import backend_of
from tests.support.network_cluster import NetworkCluster

NGINX = "k8s.io/ingress-nginx"


def rule(host, *paths):
    entries = [
        {"path": path, "pathType": kind, "backend": {"service": {"name": name, "port": {"number": 80}}}}
        for path, kind, name in paths
    ]
    return ({"host": host} if host else {}) | {"http": {"paths": entries}}


@pytest.fixture
def cluster():
    cluster = NetworkCluster()
    cluster.controllers = {"nginx": NGINX, "other": "example.org/other"}
    rules = [
        rule("a.example", ("/", "Prefix", "root"), ("/foo", "Prefix", "foo"), ("/foo/bar", "Exact", "exact")),
        rule("*.example", ("/", "ImplementationSpecific", "wild")),
        rule("", ("/shared", "Prefix", "shared")),
    ]
    metadata = {"name": "i", "namespace": "default"}
    cluster.all_ingresses.append(
        {"metadata": metadata, "spec": {"ingressClassName": "nginx", "rules": rules}}
    )
    return cluster


@pytest.mark.parametrize(
    ("host", "path", "service"),
    [
        ("a.example", "/", "root"),
        ("A.example", "/foo", "foo"),
        ("a.example", "/foo/", "foo"),
        ("a.example", "/foo/x", "foo"),
        ("a.example", "/foobar", "root"),
        ("a.example", "/foo/bar", "exact"),
        ("a.example", "/foo/bar/", "foo"),
        ("b.example", "/x", "wild"),
        ("c.b.example", "/x", None),
        ("c.b.example", "/shared/x", "shared"),
        ("example", "/x", None),
    ],
)
def test_backend_is_chosen_by_host_and_path(cluster, host, path, service):
    backend = backend_of(cluster, NGINX, host, path)
    assert (backend and backend[1]) == service


def test_default_backend_serves_what_no_rule_matches(cluster):
    backend = {"service": {"name": "fallback", "port": {"name": "http"}}}
    spec = {"ingressClassName": "nginx", "defaultBackend": backend}
    cluster.all_ingresses.append({"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
    assert backend_of(cluster, NGINX, "none", "/") == ("default", "fallback", "http")
    assert backend_of(cluster, NGINX, "a.example", "/")[1] == "root"


def test_ingresses_of_other_controllers_are_not_served(cluster):
    assert backend_of(cluster, "example.org/other", "a.example", "/") is None
