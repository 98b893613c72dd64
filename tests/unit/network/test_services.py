"""Connections lead to ready endpoints by kube-proxy's rules."""

import pytest

from mockube.network.services import (
    Outcome,
    external_route,
    local_endpoints,
    route,
)
from mockube.network.view import Peer, peer_of
from tests.support.network_cluster import NetworkCluster

CLIENT = Peer(address="10.244.9.9", pod={"metadata": {"name": "c", "namespace": "default"}}, node="node-1")


@pytest.fixture
def cluster():
    cluster = NetworkCluster()
    for number in (1, 2, 3):
        node = f"node-{number}"
        cluster.add_pod(f"web-{number}", f"10.244.0.{number}", nodeName=node)
        addresses = [{"type": "InternalIP", "address": f"172.18.0.{number}"}]
        cluster.nodes.append({"metadata": {"name": node}, "status": {"addresses": addresses}})
    return cluster


def endpoint(number, **fields):
    return {"addresses": [f"10.244.0.{number}"], "nodeName": f"node-{number}", **fields}


def targets(cluster, address, port, protocol="TCP", source=CLIENT):
    found = route(cluster, source, address, port, protocol)
    return [(target.peer.address, target.port) for target in found.targets] or found.outcome


def test_cluster_ip_leads_to_ready_endpoints(cluster):
    ports = [{"name": "http", "port": 80, "to": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    unready = endpoint(2, conditions={"ready": False, "serving": False})
    cluster.add_service(
        "web", clusterIP="10.0.0.7", ports=ports, endpoints=[endpoint(1), unready, endpoint(3)]
    )
    assert targets(cluster, "10.0.0.7", 80) == [("10.244.0.1", 8080), ("10.244.0.3", 8080)]
    assert targets(cluster, "10.0.0.7", 53, "UDP") == [("10.244.0.1", 53), ("10.244.0.3", 53)]
    assert targets(cluster, "10.0.0.7", 53) is Outcome.TIMEOUT
    assert targets(cluster, "10.0.0.7", 81) is Outcome.TIMEOUT


def test_service_without_endpoints_refuses(cluster):
    cluster.add_service("web", clusterIP="10.0.0.7")
    assert targets(cluster, "10.0.0.7", 80) is Outcome.REFUSED


def test_ending_endpoints_serve_if_no_other_is_ready(cluster):
    ending = endpoint(2, conditions={"ready": False, "serving": True, "terminating": True})
    cluster.add_service("web", clusterIP="10.0.0.7", endpoints=[ending])
    assert targets(cluster, "10.0.0.7", 80) == [("10.244.0.2", 80)]


def test_external_ips_and_load_balancers_lead_to_endpoints(cluster):
    cluster.add_service("web", clusterIP="10.0.0.7", externalIPs=["192.0.2.1"], endpoints=[endpoint(1)])
    cluster.services[0]["status"] = {"loadBalancer": {"ingress": [{"ip": "198.18.0.1"}]}}
    assert targets(cluster, "192.0.2.1", 80) == targets(cluster, "198.18.0.1", 80) == [("10.244.0.1", 80)]


def test_internal_traffic_policy_local_uses_endpoints_of_the_same_node(cluster):
    every = [endpoint(1), endpoint(2)]
    cluster.add_service("web", clusterIP="10.0.0.7", internalTrafficPolicy="Local", endpoints=every)
    assert targets(cluster, "10.0.0.7", 80) == [("10.244.0.1", 80)]
    other = Peer(address="10.244.9.8", node="node-3")
    assert targets(cluster, "10.0.0.7", 80, source=other) is Outcome.TIMEOUT


def test_session_affinity_keeps_endpoint_of_client(cluster):
    every = [endpoint(1), endpoint(2), endpoint(3)]
    cluster.add_service("web", clusterIP="10.0.0.7", sessionAffinity="ClientIP", endpoints=every)
    clients = [Peer(address=f"10.244.5.{number}") for number in range(40)]
    chosen = [targets(cluster, "10.0.0.7", 80, source=client) for client in clients]
    assert chosen == [targets(cluster, "10.0.0.7", 80, source=client) for client in clients]
    assert all(len(found) == 1 for found in chosen)
    assert len({found[0] for found in chosen}) == 3


def test_node_port_leads_to_endpoints_on_every_node(cluster):
    ports = [{"port": 80, "nodePort": 30080}]
    cluster.add_service("web", clusterIP="10.0.0.7", ports=ports, endpoints=[endpoint(1)])
    assert targets(cluster, "172.18.0.2", 30080) == [("10.244.0.1", 80)]
    assert targets(cluster, "172.18.0.2", 30081) is Outcome.REFUSED


def test_external_traffic_policy_local_holds_for_clients_on_other_nodes(cluster):
    ports = [{"port": 80, "nodePort": 30080}]
    cluster.add_service(
        "web", clusterIP="10.0.0.7", ports=ports, endpoints=[endpoint(1)], externalTrafficPolicy="Local"
    )
    first = [("10.244.0.1", 80)]
    other = Peer(address="172.18.0.3", node="node-3")
    assert targets(cluster, "172.18.0.1", 30080, source=other) == first
    assert targets(cluster, "172.18.0.2", 30080, source=other) is Outcome.TIMEOUT
    assert targets(cluster, "172.18.0.2", 30080, source=CLIENT) == first
    assert targets(cluster, "172.18.0.2", 30080, source=Peer(address="172.18.0.2", node="node-2")) == first


def test_internal_traffic_policy_is_about_cluster_ips_alone(cluster):
    cluster.add_service(
        "web",
        clusterIP="10.0.0.7",
        internalTrafficPolicy="Local",
        externalIPs=["192.0.2.1"],
        ports=[{"port": 80, "nodePort": 30080}],
        endpoints=[endpoint(2)],
    )
    assert targets(cluster, "10.0.0.7", 80) is Outcome.TIMEOUT
    assert targets(cluster, "192.0.2.1", 80) == targets(cluster, "172.18.0.1", 30080) == [("10.244.0.2", 80)]


def test_local_policy_uses_ending_endpoints_of_the_node(cluster):
    ending = endpoint(1, conditions={"ready": False, "serving": True, "terminating": True})
    every = [ending, endpoint(2)]
    cluster.add_service("web", clusterIP="10.0.0.7", internalTrafficPolicy="Local", endpoints=every)
    assert targets(cluster, "10.0.0.7", 80) == [("10.244.0.1", 80)]
    assert local_endpoints(cluster, cluster.services[0], "node-1") == 0


def hinted(number, *, nodes=(), zones=(), **fields):
    hints = {"forNodes": [{"name": name} for name in nodes], "forZones": [{"name": name} for name in zones]}
    return endpoint(number, hints=hints, **fields)


UNREADY = {"ready": False, "serving": False}


@pytest.mark.parametrize(
    ("endpoints", "found"),
    [
        pytest.param([hinted(1, nodes=["node-1"]), hinted(2, nodes=["node-2"])], [1], id="node"),
        pytest.param([hinted(2, nodes=["node-2"]), hinted(3, nodes=["node-3"])], [2, 3], id="other nodes"),
        pytest.param([hinted(1, nodes=["node-1"]), endpoint(2)], [1, 2], id="one without a hint"),
        pytest.param(
            [hinted(1, nodes=["node-1"]), endpoint(2, conditions=UNREADY)], [1], id="an unready one without"
        ),
        pytest.param([hinted(1, zones=["b"]), hinted(2, zones=["a", "b"])], [2], id="zone"),
        pytest.param([hinted(1, zones=["b"]), hinted(2, zones=["b"])], [1, 2], id="other zones"),
        pytest.param(
            [hinted(2, nodes=["node-2"], zones=["a"]), hinted(3, nodes=["node-3"], zones=["b"])],
            [2],
            id="zone after nodes",
        ),
    ],
)
def test_hints_of_endpoints_hold_if_all_have_them(cluster, endpoints, found):
    for number, zone in ((1, "a"), (2, "a"), (3, "b")):
        cluster.nodes[number - 1]["metadata"]["labels"] = {"topology.kubernetes.io/zone": zone}
    cluster.add_service("web", clusterIP="10.0.0.7", endpoints=endpoints)
    assert targets(cluster, "10.0.0.7", 80) == [(f"10.244.0.{number}", 80) for number in found]


def test_source_ranges_hold_for_pods(cluster):
    cluster.add_service("web", clusterIP="10.0.0.7", endpoints=[endpoint(1)])
    service = cluster.services[0]
    service["status"] = {"loadBalancer": {"ingress": [{"ip": "198.18.0.1"}]}}
    service["spec"]["loadBalancerSourceRanges"] = ["192.0.2.0/24"]
    assert targets(cluster, "198.18.0.1", 80) is Outcome.TIMEOUT
    assert targets(cluster, "10.0.0.7", 80) == [("10.244.0.1", 80)]
    service["spec"]["loadBalancerSourceRanges"].append("10.244.0.0/16")
    assert targets(cluster, "198.18.0.1", 80) == [("10.244.0.1", 80)]


def test_health_of_a_service_counts_the_endpoints_of_each_node(cluster):
    ports = [{"port": 80, "nodePort": 30080}]
    cluster.add_service("web", clusterIP="10.0.0.7", ports=ports, endpoints=[endpoint(1)])
    service = cluster.services[0]
    service["spec"] |= {"externalTrafficPolicy": "Local", "healthCheckNodePort": 30300}
    (target,) = route(cluster, CLIENT, "172.18.0.2", 30300).targets
    assert (target.checked, target.peer.node) == (service, "node-2")
    assert [local_endpoints(cluster, service, node) for node in ("node-1", "node-2")] == [1, 0]


def test_health_of_a_kubelet_is_for_its_node_alone(cluster):
    host = Peer(address="172.18.0.1", node="node-1")
    (target,) = route(cluster, host, "127.0.0.1", 10248).targets
    assert target.kubelet == "node-1"
    assert route(cluster, CLIENT, "172.18.0.1", 10248).outcome is Outcome.REFUSED
    assert route(cluster, host, "172.18.0.1", 10248).outcome is Outcome.REFUSED


def test_service_of_both_versions_leads_to_endpoints_of_the_version_of_its_address(cluster):
    cluster.add_service(
        "dual",
        clusterIP="10.0.0.9",
        clusterIPs=["10.0.0.9", "fd00:10::9"],
        endpoints=["192.0.2.1", "2001:db8::1"],
    )
    assert targets(cluster, "10.0.0.9", 80) == [("192.0.2.1", 80)]
    assert targets(cluster, "fd00:10::9", 80) == [("2001:db8::1", 80)]


def test_address_leads_to_its_pod_or_nowhere(cluster):
    assert targets(cluster, "10.244.0.1", 99) == [("10.244.0.1", 99)]
    assert targets(cluster, "10.244.0.9", 80) is Outcome.UNREACHABLE
    assert targets(cluster, "8.8.8.8", 53) is Outcome.OUTSIDE
    assert targets(cluster, "no address", 53) is Outcome.UNREACHABLE


def test_loopback_is_the_pod_itself(cluster):
    pod = peer_of(cluster.pods[0])
    assert targets(cluster, "127.0.0.1", 8080, source=pod) == [("10.244.0.1", 8080)]
    assert targets(cluster, "::1", 8080, source=pod) == [("10.244.0.1", 8080)]


def test_pod_in_the_network_of_its_node_serves_at_the_node(cluster):
    cluster.add_pod(
        "agent", "172.18.0.1", hostNetwork=True, nodeName="node-1", ports=[{"containerPort": 9100}]
    )
    cluster.add_service(
        "agent", clusterIP="10.0.0.9", ports=[{"port": 9100}], endpoints=[{"addresses": ["172.18.0.1"]}]
    )
    assert targets(cluster, "172.18.0.1", 9100) == [("172.18.0.1", 9100)]
    (target,) = route(cluster, CLIENT, "10.0.0.9", 9100).targets
    assert target.pod["metadata"]["name"] == "agent"


@pytest.mark.parametrize(
    ("address", "protocol", "source", "found"),
    [
        ("172.18.0.1", "TCP", CLIENT, ("10.244.0.5", 8080)),
        ("172.18.0.1", "UDP", CLIENT, ("10.244.0.6", 53)),
        ("172.18.0.2", "TCP", CLIENT, Outcome.REFUSED),
        ("127.0.0.1", "TCP", Peer(address="172.18.0.1", node="node-1"), ("10.244.0.7", 9090)),
        ("172.18.0.1", "TCP", Peer(address="172.18.0.1", node="node-1"), ("10.244.0.5", 8080)),
    ],
)
def test_host_port_leads_to_its_pod_by_protocol_and_address(cluster, address, protocol, source, found):
    for name, pod_ip, port in (
        ("a", "10.244.0.5", {"containerPort": 8080, "hostIP": "172.18.0.1"}),
        ("b", "10.244.0.6", {"containerPort": 53, "protocol": "UDP"}),
        ("c", "10.244.0.7", {"containerPort": 9090, "hostIP": "127.0.0.1"}),
    ):
        cluster.add_pod(name, pod_ip, nodeName="node-1", ports=[{"hostPort": 5000, **port}])
    assert targets(cluster, address, 5000, protocol, source) == (
        [found] if isinstance(found, tuple) else found
    )


def test_node_port_is_open_for_pods_in_the_network_of_the_node_itself(cluster):
    cluster.add_service(
        "web", clusterIP="10.0.0.7", ports=[{"port": 80, "nodePort": 30080}], endpoints=[endpoint(1)]
    )
    own = Peer(address="172.18.0.2", node="node-2")
    assert targets(cluster, "172.18.0.2", 30080, source=own) == [("10.244.0.1", 80)]


@pytest.mark.parametrize("endpoints", [["192.0.2.9"], []])
def test_kubernetes_service_leads_to_the_api_server(cluster, endpoints):
    cluster.add_service(
        "kubernetes", clusterIP="10.0.0.1", ports=[{"port": 443, "to": 6443}], endpoints=endpoints
    )
    (target,) = route(cluster, CLIENT, "10.0.0.1", 443).targets
    assert target.is_api_server


def test_node_without_kube_proxy_has_its_old_rules():
    cluster = NetworkCluster()
    cluster.add_pod("new", "10.244.1.2")
    cluster.add_service("web", clusterIP="10.0.0.7", endpoints=["10.244.1.2"])
    old = NetworkCluster()
    old.add_service("web", clusterIP="10.0.0.7", endpoints=["10.244.1.1"])
    cluster.node_rules = {"node-2": old}
    addresses = {
        node: [
            target.peer.address
            for target in route(cluster, Peer(address="10.244.9.9", node=node), "10.0.0.7", 80).targets
        ]
        for node in ("node-1", "node-2")
    }
    assert addresses == {"node-1": ["10.244.1.2"], "node-2": ["10.244.1.1"]}


@pytest.mark.parametrize(
    ("endpoints", "port", "kubelet"),
    [({}, 10250, "node-1"), ({}, 10251, None), ({"kubeletEndpoint": {"Port": 10251}}, 10251, "node-1")],
)
def test_port_of_the_kubelet_leads_to_it(endpoints, port, kubelet):
    cluster = NetworkCluster()
    status = {"addresses": [{"type": "InternalIP", "address": "172.18.0.2"}], "daemonEndpoints": endpoints}
    cluster.nodes = [{"metadata": {"name": "node-1"}, "status": status}]
    targets = route(cluster, CLIENT, "172.18.0.2", port).targets
    assert [target.kubelet for target in targets] == ([kubelet] if kubelet else [])


def external_targets(cluster, *, is_balanced=False, client="127.0.0.1", source_ranges=None, **spec):
    cluster.services.clear()
    cluster.endpoint_slices.clear()
    ranges = {"loadBalancerSourceRanges": source_ranges} if source_ranges else {}
    cluster.add_service("web", endpoints=[endpoint(1), endpoint(2)], **spec, **ranges)
    service = cluster.services[0]
    found = external_route(
        cluster, Peer(address=client), service, service["spec"]["ports"][0], is_balanced=is_balanced
    )
    return [target.peer.address for target in found.targets] or found.outcome


def test_connection_from_outside_enters_at_node_with_endpoint(cluster):
    both = ["10.244.0.1", "10.244.0.2"]
    assert external_targets(cluster) == both
    assert external_targets(cluster, externalTrafficPolicy="Local", internalTrafficPolicy="Local") == both
    assert len(external_targets(cluster, sessionAffinity="ClientIP")) == 1
    cluster.services[0]["spec"]["selector"] = {}
    cluster.endpoint_slices.clear()
    service = cluster.services[0]
    found = external_route(cluster, CLIENT, service, service["spec"]["ports"][0], is_balanced=False)
    assert found.outcome is Outcome.REFUSED


def test_source_ranges_hold_for_load_balancer_only(cluster):
    assert external_targets(cluster, source_ranges=["10.0.0.0/8"], is_balanced=True) is Outcome.TIMEOUT
    assert external_targets(cluster, source_ranges=["10.0.0.0/8"], is_balanced=True, client="10.1.2.3")
    assert len(external_targets(cluster, source_ranges=["10.0.0.0/8"])) == 2
    cluster.services[0]["metadata"]["annotations"] = {
        "service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8, 192.0.2.0/24"
    }
    del cluster.services[0]["spec"]["loadBalancerSourceRanges"]
    service = cluster.services[0]
    for address, outcome in (("192.0.2.9", Outcome.OPEN), ("127.0.0.1", Outcome.TIMEOUT)):
        peer = Peer(address=address)
        found = external_route(cluster, peer, service, service["spec"]["ports"][0], is_balanced=True)
        assert found.outcome is outcome


def test_load_balancer_with_loopback_address_is_reached_by_pods(cluster):
    cluster.add_service("web", endpoints=[endpoint(1)])
    cluster.services[0]["status"] = {"loadBalancer": {"ingress": [{"ip": "127.10.0.1"}, {"ip": "127.0.0.1"}]}}
    assert targets(cluster, "127.10.0.1", 80) == [("10.244.0.1", 80)]
    assert targets(cluster, "127.10.0.2", 80) == [("10.244.9.9", 80)]
    assert targets(cluster, "127.0.0.1", 80) == [("10.244.9.9", 80)]
