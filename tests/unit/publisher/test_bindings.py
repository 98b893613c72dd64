"""Which ports of Services are published, and where."""

import pytest

from mockube.publisher.bindings import (
    Endpoint,
    candidates,
    endpoint_of,
    problem_of_balancer,
    problem_of_client,
    published_ports,
)

RANGE = "127.10.0.0/16"


def service(kind="NodePort", *ports, ip=None, name="web", namespace="default"):
    status = {"loadBalancer": {"ingress": [{"ip": ip}]} if ip else {}}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": kind, "ports": list(ports) or [{"port": 80, "nodePort": 30080}]},
        "status": status,
    }


def endpoints(tree, address="127.0.0.1"):
    return [
        (port.address, port.candidates) for port in published_ports(tree, address=address, balancers=RANGE)
    ]


def test_node_port_is_that_of_all_nodes():
    assert endpoints(service()) == [("127.0.0.1", (30080, 0))]


@pytest.mark.parametrize(
    ("ip", "address", "expected"),
    [
        ("127.10.0.5", "127.0.0.1", "127.10.0.5"),
        ("127.10.0.5", "192.0.2.1", "192.0.2.1"),  # others reach it
    ],
)
def test_load_balancer_without_outside_clients_has_its_own_address(ip, address, expected):
    found = endpoints(service("LoadBalancer", {"port": 80}, ip=ip), address)
    assert found == [(expected, (80, 8080, 0))]


@pytest.mark.parametrize("ip", ["198.18.0.1", "127.0.0.53", "0.0.0.0", "::1", "host.example"])
def test_load_balancer_outside_of_the_range_takes_no_port_of_this_machine(ip):
    tree = service("LoadBalancer", {"port": 5432, "nodePort": 30001}, ip=ip)
    assert endpoints(tree) == [("127.0.0.1", (30001, 0))]
    problem = problem_of_balancer(tree, "127.0.0.1", RANGE)
    assert problem == f"the address {ip} is not one of {RANGE}, which this machine serves"


@pytest.mark.parametrize("balancers", ["198.18.0.0/16", ""])
def test_load_balancer_has_ports_of_this_machine_where_the_range_is_of_another(balancers):
    tree = service("LoadBalancer", {"port": 5432}, ip="198.18.0.1")
    (port,) = published_ports(tree, address="127.0.0.1", balancers=balancers)
    assert port.address == "127.0.0.1"


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        (service("LoadBalancer"), "its load balancer has no address"),
        (service("LoadBalancer", ip="127.10.0.1"), ""),
        (service(), ""),
    ],
)
def test_problem_of_a_load_balancer_is_named(tree, problem):
    assert problem_of_balancer(tree, "127.0.0.1", RANGE) == problem


def test_load_balancer_without_address_has_node_port_alone():
    assert endpoints(service("LoadBalancer", {"port": 5432, "nodePort": 30001})) == [
        ("127.0.0.1", (30001, 0))
    ]
    both = endpoints(service("LoadBalancer", {"port": 5432, "nodePort": 30001}, ip="127.10.0.1"))
    assert both == [("127.0.0.1", (30001, 0)), ("127.10.0.1", (5432, 0))]


@pytest.mark.parametrize(
    "tree",
    [
        service("ClusterIP"),
        service("ExternalName"),
        service("NodePort", {"port": 53, "nodePort": 30053, "protocol": "UDP"}),
        service("NodePort", name="kubernetes"),
    ],
)
def test_others_are_not_published(tree):
    assert endpoints(tree) == []


def test_replaced_port_is_read_from_record():
    (port,) = published_ports(service(), address="::1", balancers=RANGE)
    assert endpoint_of(port, {}) == Endpoint("::1", 30080)
    replaced = Endpoint("::1", 41000)
    assert str(replaced) == "[::1]:41000"
    assert endpoint_of(port, {"default.web.80.node-port": str(replaced)}) == replaced


def test_first_address_of_a_load_balancer_counts_and_a_name_is_none():
    named = service("LoadBalancer", {"port": 80})
    named["status"]["loadBalancer"]["ingress"] = [{"hostname": "x.example"}, {"ip": "127.10.0.7"}]
    assert endpoints(named) == [("127.10.0.7", (80, 8080, 0))]
    named["status"]["loadBalancer"]["ingress"] = [{"hostname": "x.example"}]
    assert endpoints(named) == []


@pytest.mark.parametrize("kind", ["NodePort", "ClusterIP"])
def test_only_load_balancers_have_an_address(kind):
    tree = service(kind, {"port": 80, "nodePort": 30080}, ip="127.10.0.5")
    assert [address for address, _ in endpoints(tree)] == ["127.0.0.1"] * (kind == "NodePort")
    assert problem_of_balancer(tree, "127.0.0.1", RANGE) == ""


def test_port_has_a_key_and_a_description():
    node, balancer = published_ports(
        service("LoadBalancer", {"port": 80, "name": "http", "nodePort": 30080}, ip="127.10.0.5"),
        address="127.0.0.1",
        balancers=RANGE,
    )
    assert (node.key, node.description) == ("default.web.80.node-port", "node port 30080")
    assert (balancer.key, balancer.description) == (
        "default.web.80.load-balancer",
        "port 80 of the load balancer",
    )
    assert (node.name, node.node_port, balancer.node_port) == ("http", 30080, 0)


@pytest.mark.parametrize(("port", "tried"), [(1023, (1023, 9023, 0)), (1024, (1024, 0))])
def test_port_that_needs_rights_has_another_one_in_its_place(port, tried):
    assert candidates(port) == tried


def test_client_outside_of_the_source_ranges_gets_no_answer():
    tree = service("LoadBalancer", ip="127.10.0.5")
    assert problem_of_client(tree, "127.0.0.1") == ""
    tree["spec"]["loadBalancerSourceRanges"] = ["10.0.0.0/8", "192.0.2.0/24"]
    assert problem_of_client(tree, "10.1.2.3") == ""
    problem = "no answer to 127.0.0.1, which is not in the Service's loadBalancerSourceRanges: 10.0.0.0/8, 192.0.2.0/24"
    assert problem_of_client(tree, "127.0.0.1") == problem


def test_service_with_other_ports_has_those_of_tcp():
    ports = [{"port": 53, "protocol": "UDP", "nodePort": 1}, {"port": 80, "protocol": "TCP", "nodePort": 2}]
    assert endpoints(service("NodePort", *ports)) == [("127.0.0.1", (2, 0))]
    elsewhere = service("NodePort", name="kubernetes", namespace="shop")
    assert len(endpoints(elsewhere)) == 1


def test_endpoint_is_written_and_read():
    for text in ("127.0.0.1:80", "[::1]:80"):
        assert str(Endpoint.parse(text)) == text
