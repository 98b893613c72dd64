"""Fields of Services that depend on each other, in creations and updates."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.strategy import MAIN
from tests.support.server.requests import request

SERVICES = NEWEST.strategies[GroupResource("", "services")]

PORT = {"name": "a", "port": 80}
CLUSTER = {
    "type": "ClusterIP",
    "clusterIP": "10.0.0.1",
    "clusterIPs": ["10.0.0.1"],
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
    "ports": [PORT],
}
NODE = CLUSTER | {
    "type": "NodePort",
    "externalTrafficPolicy": "Cluster",
    "ports": [PORT | {"nodePort": 30001}],
}
BALANCED = NODE | {
    "type": "LoadBalancer",
    "externalTrafficPolicy": "Local",
    "healthCheckNodePort": 30002,
    "allocateLoadBalancerNodePorts": True,
    "loadBalancerClass": "example.com/a",
}


def updated_service(new, old):
    tree = {"metadata": {}, "spec": new, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    SERVICES.prepare_update[MAIN](tree, {"metadata": {}, "spec": old, "status": {}}, request())
    return tree


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(
            {"type": "ClusterIP", "ports": [PORT]}, CLUSTER, {"clusterIP", "clusterIPs"}, id="addresses"
        ),
        pytest.param(
            {"type": "NodePort", "ports": [PORT]}, NODE, {"clusterIP", "clusterIPs", "ports"}, id="ports"
        ),
        pytest.param(
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [PORT]},
            BALANCED,
            {"clusterIP", "clusterIPs", "ports", "healthCheckNodePort"},
            id="the port for health checks",
        ),
    ],
)
def test_omitted_allocated_fields_are_kept_by_update(new, old, expected):
    spec = updated_service(new, old)["spec"]
    assert {field: spec[field] for field in expected} == {field: old[field] for field in expected}


def test_node_port_is_not_carried_over_to_other_port():
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30001}]
    assert updated_service(NODE | {"ports": ports}, NODE)["spec"]["ports"] == ports


UNALLOCATED = BALANCED | {"allocateLoadBalancerNodePorts": False}


@pytest.mark.parametrize(
    ("new", "old", "kept"),
    [
        (BALANCED, BALANCED, [30001, 30003]),
        (UNALLOCATED, BALANCED, [0, 30003]),
        (BALANCED, UNALLOCATED, [0, 30003]),
        (NODE, UNALLOCATED, [0, 30003]),
    ],
)
def test_load_balancer_without_node_ports_keeps_none(new, old, kept):
    ports = [PORT | {"nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30003}]
    spec = updated_service(new | {"ports": [PORT, ports[1]]}, old | {"ports": ports})["spec"]
    assert [port.get("nodePort", 0) for port in spec["ports"]] == kept


@pytest.mark.parametrize(
    ("new", "old", "gone"),
    [
        pytest.param(
            CLUSTER | {"type": "ExternalName"},
            CLUSTER,
            {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"},
            id="an external name needs no address",
        ),
        pytest.param(NODE | {"type": "ClusterIP"}, NODE, {"externalTrafficPolicy"}, id="no longer external"),
        pytest.param(
            BALANCED | {"type": "NodePort"},
            BALANCED,
            {"healthCheckNodePort", "allocateLoadBalancerNodePorts", "loadBalancerClass"},
            id="no load balancer",
        ),
    ],
)
def test_unneeded_fields_are_dropped_on_type_change(new, old, gone):
    assert updated_service(new, old)["spec"].keys() == new.keys() - gone


def test_node_ports_are_dropped_with_their_type():
    assert updated_service(NODE | {"type": "ClusterIP"}, NODE)["spec"]["ports"] == [PORT]


def test_changed_fields_reach_validation():
    new = CLUSTER | {"type": "ExternalName", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"]}
    assert updated_service(new, CLUSTER)["spec"]["clusterIP"] == "10.0.0.9"
    ports = [PORT | {"nodePort": 30009}]
    assert updated_service(NODE | {"type": "ClusterIP", "ports": ports}, NODE)["spec"]["ports"] == ports


@pytest.mark.parametrize(
    ("one", "several", "expected"),
    [
        pytest.param("10.0.0.1", [], ["10.0.0.1"], id="several left out"),
        pytest.param("10.0.0.9", ["10.0.0.1"], ["10.0.0.9"], id="one changed"),
        pytest.param("10.0.0.9", ["10.0.0.9"], ["10.0.0.9"], id="both changed"),
    ],
)
def test_cluster_ips_follow_changed_cluster_ip(one, several, expected):
    new = CLUSTER | {"clusterIP": one, "clusterIPs": several}
    assert updated_service(new, CLUSTER)["spec"]["clusterIPs"] == expected


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        pytest.param("LoadBalancer", {"ingress": [{"ip": "1.2.3.4"}]}, id="a load balancer keeps its state"),
        pytest.param("ClusterIP", {}, id="not for ClusterIP"),
    ],
)
def test_load_balancer_status_is_dropped_on_type_change(type_, expected):
    assert updated_service(CLUSTER | {"type": type_}, CLUSTER)["status"] == {"loadBalancer": expected}


def test_cluster_ips_default_to_cluster_ip():
    tree = {"metadata": {}, "spec": {"clusterIP": "10.0.0.1"}}
    SERVICES.prepare_create(tree, request())
    assert tree["spec"]["clusterIPs"] == ["10.0.0.1"]
