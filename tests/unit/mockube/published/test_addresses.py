"""The URLs of what is published, from objects of the API."""

import pytest

from mockube.failure import Failure, Missing, UsageError
from mockube.published.addresses import (
    Published,
    gateway_urls,
    ingress_urls,
    parse_object,
    select_port,
    service_problem,
    service_urls,
)

RECORD = {
    "address": "127.0.0.1",
    "load-balancers": "127.10.0.0/16",
    "http": "127.0.0.1:80",
    "https": "127.0.0.1:8443",
}


def service(kind, *ports, ip="", **spec):
    status = {"loadBalancer": {"ingress": [{"ip": ip}]} if ip else {}}
    metadata = {"name": "web", "namespace": "default"}
    return {"metadata": metadata, "spec": {"type": kind, "ports": ports, **spec}, "status": status}


def urls(tree, *, record=(), uses_tls=False):
    published = Published(record={**RECORD, **dict(record)})
    return [(each.port, each.url, each.note) for each in service_urls(tree, published, uses_tls=uses_tls)]


def test_node_port_and_load_balancer():
    assert urls(service("NodePort", {"port": 80, "nodePort": 30080})) == [
        ("80", "http://127.0.0.1:30080", "")
    ]
    ports = [
        {"name": "http", "port": 80, "nodePort": 30080},
        {"name": "https", "port": 8443, "nodePort": 30443},
    ]
    assert urls(service("LoadBalancer", *ports, ip="127.10.0.1")) == [
        ("http/80", "http://127.10.0.1", ""),
        ("https/8443", "https://127.10.0.1:8443", ""),
    ]
    assert urls(service("LoadBalancer", *ports)) == [
        ("http/80", "http://127.0.0.1:30080", ""),
        ("https/8443", "https://127.0.0.1:30443", ""),
    ]


def test_replaced_port_and_one_that_is_not_published():
    tree = service("NodePort", {"port": 80, "nodePort": 30080})
    assert urls(tree, record={"default.web.80.node-port": "127.0.0.1:41000"}, uses_tls=True) == [
        ("80", "https://127.0.0.1:41000", "")
    ]
    assert urls(tree, record={"default.web.80.node-port": "none: no rights"}) == [("80", "", "no rights")]


@pytest.mark.parametrize(("ranges", "has_warning"), [(["203.0.113.0/24"], True), (["127.0.0.0/8"], False)])
def test_load_balancer_that_excludes_clients_of_this_machine_has_a_warning(ranges, has_warning):
    port = {"port": 80, "nodePort": 30080}
    tree = service("LoadBalancer", port, ip="127.10.0.1", loadBalancerSourceRanges=ranges)
    found = [*service_urls(tree, Published(record=RECORD))]
    assert [(each.url, "203.0.113.0/24" in each.warning) for each in found] == [
        ("http://127.10.0.1", has_warning)
    ]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (service("ClusterIP", {"port": 80}), "run `kubectl port-forward svc/web 8080:80`"),
        (service("ExternalName", externalName="db.example"), "is an alias of db.example"),
        (service("NodePort", {"port": 53, "protocol": "UDP"}), "has no TCP port"),
    ],
)
def test_service_that_cannot_be_reached_says_why(tree, message):
    problem = service_problem(tree)
    assert isinstance(problem, Failure)
    assert message in str(problem)


def test_service_that_can_be_reached_has_no_problem():
    assert service_problem(service("NodePort", {"port": 80})) is None


def test_port_is_selected_by_number_or_name():
    ports = [{"name": "a", "port": 80, "nodePort": 30080}, {"name": "b", "port": 81, "nodePort": 30081}]
    found = [*service_urls(service("NodePort", *ports), Published(record=RECORD))]
    assert [each.url for each in select_port(found, "b", "web")] == ["http://127.0.0.1:30081"]
    assert select_port(found, "81", "web") == select_port(found, "b", "web")
    assert select_port(found, "", "web") == found
    with pytest.raises(Missing, match='service "web" has no port c: a/80, b/81'):
        select_port(found, "c", "web")


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("web", ("svc", "web")),
        ("service/web", ("svc", "web")),
        ("ing/a", ("ingress", "a")),
        ("gw/g", ("gateway", "g")),
    ],
)
def test_object_is_named_as_for_kubectl(text, parsed):
    assert parse_object(text) == parsed


@pytest.mark.parametrize("text", ["pod/web", "svc/", "a/b/c", "", "svc/a?b", "svc/..", "Web"])
def test_other_object_is_refused(text):
    with pytest.raises(UsageError, match="is none of svc/NAME, ingress/NAME and gateway/NAME"):
        parse_object(text)


def test_ingress_has_url_of_each_host():
    rules = [
        {"host": "a.example", "http": {"paths": [{"path": "/api(/|$)(.*)"}]}},
        {"host": "b.localhost", "http": {"paths": [{"path": "/"}]}},
        {"http": {"paths": [{"path": "/index.html", "pathType": "Exact"}]}},
        {"host": "a.example"},
    ]
    tree = {
        "metadata": {"name": "i", "namespace": "default"},
        "spec": {"tls": [{"hosts": ["a.example"]}], "rules": rules},
        "status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}},
    }
    found = [(each.url, each.note) for each in ingress_urls(tree, Published(record=RECORD))]
    assert found == [
        ("https://a.example:8443/api", "curl --resolve a.example:8443:127.0.0.1 https://a.example:8443/api"),
        ("http://b.localhost", ""),
        ("http://127.0.0.1/index.html", ""),
    ]
    (unserved,) = ingress_urls(tree | {"status": {}}, Published(record=RECORD))
    assert (unserved.url, unserved.note) == ("", "no controller that mockube knows serves its class")
    closed = {**RECORD, "http": "none: no rights", "https": ""}
    assert {each.note for each in ingress_urls(tree, Published(record=closed))} == {"its port is not open"}


def test_listener_without_a_certificate_has_the_reason_in_place_of_a_url():
    message = 'secret "default/c" does not exist'
    conditions = [{"type": "Programmed", "status": "False", "reason": "Invalid", "message": message}]
    tree = {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"listeners": [{"name": "tls", "protocol": "HTTPS", "port": 443}]},
        "status": {
            "addresses": [{"value": "127.0.0.1"}],
            "listeners": [{"name": "tls", "conditions": conditions}],
        },
    }
    found = [*gateway_urls(tree, Published(record=RECORD))]
    assert [(each.port, each.url, each.note) for each in found] == [("443", "", f"tls: {message}")]


def test_gateway_has_url_of_each_listener():
    listeners = [
        {"name": "http", "protocol": "HTTP", "port": 80},
        {"name": "tls", "protocol": "HTTPS", "port": 443, "hostname": "*.a.localhost"},
        {"name": "raw", "protocol": "TCP", "port": 1},
    ]
    tree = {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"listeners": listeners},
        "status": {"addresses": [{"value": "127.0.0.1"}]},
    }
    found = [each.url for each in gateway_urls(tree, Published(record=RECORD))]
    assert found == ["http://127.0.0.1", "https://any.a.localhost:8443"]
    assert [each.url for each in gateway_urls(tree, Published(record=RECORD), uses_tls=True)] == found[1:]
