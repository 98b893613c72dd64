"""Where the connections of processes with networks of their own lead."""

import asyncio
from types import SimpleNamespace

import pytest

from mockube.component_base.clock import RealClock
from mockube.container_runtime.pod_network.decisions import (
    ClusterNames,
    Direct,
    Echoed,
    Forwarded,
    Refusal,
    Served,
)
from mockube.container_runtime.pod_network.packet_queue import ICMP, NewConnection
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.connections.pod_connections import PodConnections
from mockube.container_runtime.simulated.connections.port_answers import OpenPort
from mockube.container_runtime.simulated.connections.process_connections import ProcessConnections
from tests.support.network_cluster import NetworkCluster

DNS, OUTSIDE, PROCESS, SIMULATED, OWN = "10.0.0.10", "192.0.2.1", "10.244.0.3", "10.244.0.4", "10.244.0.2"


class SyncedCluster(NetworkCluster):
    async def wait_synced(self):
        pass


class Pods:
    def latest(self, pod):
        return pod


class ApiServer:
    async def admin_policy(self):
        return ""


async def open_socket(*_):
    raise AssertionError("the kernel connects")


def process_port(pod, port):
    """Pods with the label `process` are processes; port 443 is port 9443 of its process."""
    if "process" not in pod["metadata"]["labels"]:
        return None
    return ProcessPort(pod["status"]["podIP"], {443: 9443}.get(port, port), open_socket)


@pytest.fixture
def cluster():
    cluster = SyncedCluster()
    cluster.add_pod("client", OWN, labels={"process": ""})
    two = {"podIP": PROCESS, "podIPs": [{"ip": PROCESS}, {"ip": "fd00::3"}]}
    cluster.add_pod("server", PROCESS, labels={"process": "", "app": "server"})["status"] = two
    cluster.add_pod("nginx", SIMULATED)
    return cluster


@pytest.fixture
def connections(cluster):

    async def reply_to_datagram(pod, port, _, data, client):
        return f"{pod['metadata']['name']}:{port} got {data.decode()} from {client}".encode()

    open_ports = {(80, "TCP"), (53, "UDP")}
    ports = SimpleNamespace(
        databases=None,
        open_port=lambda _, port, protocol="TCP": OpenPort() if (port, protocol) in open_ports else None,
        reply_to_datagram=reply_to_datagram,
    )
    clock = RealClock()
    network = PodConnections(Records(), cluster, ApiServer(), Pods(), ports, process_port, clock)
    addresses = {OWN, PROCESS}
    return ProcessConnections(
        network, cluster, Pods(), ports, process_port, addresses.__contains__, "https://127.0.0.1:1", clock
    )


@pytest.fixture
def decide(connections, cluster):
    client = cluster.pods[0]

    async def decide(address, port=80, protocol="TCP"):
        packet = NewConnection(1, 2, protocol, OWN, 40000, address, port)
        return await connections.decide(client, packet)

    return decide


@pytest.mark.parametrize(
    ("address", "port", "protocol", "expected"),
    [
        (PROCESS, 8080, "TCP", Direct(PROCESS, 8080)),
        (PROCESS, 443, "TCP", Direct(PROCESS, 9443)),
        (PROCESS, 53, "UDP", Direct(PROCESS, 53)),
        ("fd00::3", 8080, "TCP", Direct("fd00::3", 8080)),
        (SIMULATED, 81, "TCP", Refusal.REFUSED),
        (SIMULATED, 80, "UDP", Refusal.REFUSED),
        (PROCESS, 0, ICMP, Direct(PROCESS, 0)),
        (SIMULATED, 0, ICMP, Echoed()),
        (OUTSIDE, 0, ICMP, Refusal.DROPPED),
        (OUTSIDE, 53, "UDP", Forwarded(OUTSIDE, 53)),
        (OUTSIDE, 5, "SCTP", Refusal.DROPPED),
        ("224.0.0.1", 5, "UDP", Refusal.DROPPED),
        (DNS, 53, "UDP", ClusterNames()),
        (DNS, 53, "TCP", ClusterNames()),
    ],
)
async def test_decision_on_address(decide, address, port, protocol, expected):
    assert await decide(address, port, protocol) == expected


async def test_simulated_pod_is_served_here(decide):
    assert isinstance(await decide(SIMULATED), Served)


async def test_simulated_pod_answers_datagrams(decide):
    answered = await decide(SIMULATED, 53, "UDP")
    assert await answered.reply(b"x") == f"nginx:53 got x from {OWN}:40000".encode()
    assert await decide(SIMULATED, 54, "UDP") is Refusal.REFUSED


async def test_service_leads_to_its_endpoints(cluster, decide):
    cluster.add_service("web", endpoints=[PROCESS], ports=[{"port": 80, "to": 8080}], clusterIP="10.0.0.5")
    cluster.add_service("none", clusterIP="10.0.0.6")
    assert await decide("10.0.0.5") == Direct(PROCESS, 8080)
    assert await decide("10.0.0.5", 81) is Refusal.DROPPED
    assert await decide("10.0.0.6") is Refusal.REFUSED


async def test_name_server_in_a_pod_answers_in_place_of_the_clusters(cluster, decide):
    ports = [{"port": 53, "protocol": "UDP"}]
    cluster.add_service("kube-dns", endpoints=[PROCESS], ports=ports, clusterIP=DNS)
    assert await decide(DNS, 53, "UDP") == Direct(PROCESS, 53)


async def test_policy_closes_pods_and_the_outside(cluster, decide):
    cluster.network_policies.append(
        {
            "metadata": {"name": "closed", "namespace": "default"},
            "spec": {
                "podSelector": {},
                "policyTypes": ["Egress"],
                "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "server"}}}]}],
            },
        }
    )
    assert await decide(PROCESS) == Direct(PROCESS, 80)
    assert await decide(SIMULATED) is Refusal.DROPPED
    assert await decide(OUTSIDE, 53, "UDP") is Refusal.DROPPED
    assert await decide(SIMULATED, 0, ICMP) is Refusal.DROPPED


async def test_port_of_node_leads_to_the_pod_that_declares_it(cluster, decide):
    cluster.nodes.append(
        {
            "metadata": {"name": "node-1"},
            "status": {"addresses": [{"type": "InternalIP", "address": "172.18.0.1"}]},
        }
    )
    cluster.pods[1]["spec"]["nodeName"] = "node-1"
    cluster.pods[1]["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 9090}]
    assert await decide("172.18.0.1", 9090) == Direct(PROCESS, 8080)
    assert await decide("172.18.0.1", 9091) is Refusal.REFUSED


@pytest.fixture
def outside(connections, monkeypatch):
    """Record the addresses outside to which this machine connects."""
    attempts = []

    async def connect(port):
        attempts.append((port.host, port.port))
        return Served(None)

    monkeypatch.setattr(connections, "_connect", connect)
    return attempts


async def test_endpoint_outside_is_reached_as_by_its_address(cluster, decide, outside):
    ports = [{"port": 80, "to": 8080}, {"name": "udp", "port": 53, "protocol": "UDP"}]
    cluster.add_service("out", endpoints=[OUTSIDE], ports=ports, clusterIP="10.0.0.5")
    assert isinstance(await decide("10.0.0.5"), Served)
    assert outside == [(OUTSIDE, 8080)]
    assert await decide("10.0.0.5", 53, "UDP") == Forwarded(OUTSIDE, 53)


@pytest.mark.parametrize("node", ["", "node-1"], ids=["no node", "the node of the client"])
async def test_policy_closes_endpoint_outside_by_its_own_address(cluster, decide, outside, node):
    cluster.pods[0]["spec"]["nodeName"] = "node-1"
    endpoint = {"addresses": [OUTSIDE]} | ({"nodeName": node} if node else {})
    cluster.add_service("out", endpoints=[endpoint], clusterIP="10.0.0.5")
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    cluster.network_policies.append(
        {
            "metadata": {"name": "closed", "namespace": "default"},
            "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [rule]},
        }
    )
    assert await decide("10.0.0.5") is Refusal.DROPPED
    rule["to"][0]["ipBlock"]["cidr"] = f"{OUTSIDE}/32"
    assert isinstance(await decide("10.0.0.5"), Served)
    assert outside == [(OUTSIDE, 80)]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "0.0.0.0", "224.0.0.1", OWN, "10.0.0.6", "example.com"],
)
async def test_endpoint_that_the_client_does_not_reach_gets_nothing(cluster, decide, outside, address):
    cluster.add_service("out", endpoints=[address], clusterIP="10.0.0.5")
    cluster.add_service("other", endpoints=[OUTSIDE], clusterIP="10.0.0.6")
    cluster.pods[0]["spec"]["hostNetwork"] = True
    cluster.pods[0]["status"]["hostIP"] = OWN
    assert await decide("10.0.0.5") in (Refusal.DROPPED, Refusal.REFUSED)
    assert not outside


@pytest.mark.parametrize("address", ["::1", "::ffff:127.0.0.1", "::", "ff02::1", "::ffff:0.0.0.0"])
async def test_addresses_of_this_machine_are_not_outside(cluster, decide, outside, address):
    cluster.add_service("out", endpoints=[address], clusterIP="fd00:10::5")
    assert await decide("fd00:10::5") is Refusal.DROPPED
    assert not outside


async def test_endpoint_at_a_node_leads_to_the_network_of_the_node(cluster, decide, outside):
    address = {"type": "InternalIP", "address": PROCESS}
    cluster.pods.pop(1)
    cluster.nodes.append({"metadata": {"name": "node-1"}, "status": {"addresses": [address]}})
    cluster.add_service("out", endpoints=[PROCESS], ports=[{"port": 80, "to": 9100}], clusterIP="10.0.0.5")
    assert await decide("10.0.0.5") == Direct(PROCESS, 9100)
    assert not outside


async def test_service_leads_to_endpoints_of_the_version_of_its_address(cluster, decide):
    cluster.add_service(
        "dual",
        endpoints=[PROCESS, "fd00::3"],
        clusterIP="10.0.0.5",
        clusterIPs=["10.0.0.5", "fd00:10::5"],
    )
    assert {(await decide("10.0.0.5")).address for _ in range(4)} == {PROCESS}
    assert {(await decide("fd00:10::5")).address for _ in range(4)} == {"fd00::3"}


@pytest.mark.parametrize(
    ("external_name", "record_type", "target"),
    [
        ("db.example.com", "A", "db.example.com"),
        ("db.example.com", "AAAA", "db.example.com"),
        ("db.example.com", "", "db.example.com"),
        ("db.corp", "A", "db.corp"),
        ("db.example.com", "CNAME", ""),
        ("chain.default.svc.cluster.local", "A", "db.example.org"),
        ("web.default.svc.cluster.local", "A", ""),
        ("absent.default.svc.cluster.local", "A", ""),
        ("ext.default.svc.cluster.local", "A", ""),
    ],
)
async def test_alias_leads_to_a_name_outside(cluster, connections, external_name, record_type, target):
    cluster.add_service("ext", type="ExternalName", externalName=external_name)
    cluster.add_service("chain", type="ExternalName", externalName="db.example.org")
    cluster.add_service("web", clusterIP="10.0.0.5")
    names = await connections.look_up(cluster.pods[0], "ext.default.svc.cluster.local", record_type)
    assert (names.target, names.is_outside, names.exists) == (target, bool(target), True)
    assert names.records[0][1:] == ("CNAME", f"{external_name}.")


async def test_outside_answers_before_the_pod(connections):
    has_left = asyncio.Event()

    async def wait_for_client(reader, writer):
        await reader.read()
        writer.close()
        await writer.wait_closed()
        has_left.set()

    server = await asyncio.start_server(wait_for_client, "127.0.0.1", 0)
    outside = ProcessPort("127.0.0.1", server.sockets[0].getsockname()[1])
    async with server:
        served = await connections._connect(outside)
        assert isinstance(served, Served)
        served.abandon()
        await has_left.wait()
    assert await connections._connect(outside) is Refusal.REFUSED


class Client:
    """A connection that sends some bytes in parts."""

    def __init__(self, *parts):
        self.parts, self.received = [*parts], b""

    async def read(self, _):
        return self.parts.pop(0) if self.parts else b""

    async def write(self, data):
        self.received += data


@pytest.mark.parametrize(
    ("node", "status", "count"), [("node-1", b"200 OK", 1), ("node-2", b"503 Service Unavailable", 0)]
)
async def test_health_of_a_service_answers_processes(cluster, decide, node, status, count):
    addresses = [{"type": "InternalIP", "address": "172.18.0.9"}]
    cluster.nodes.append({"metadata": {"name": node}, "status": {"addresses": addresses}})
    fields = {"addresses": [PROCESS], "nodeName": "node-1"}
    cluster.add_service("web", endpoints=[fields], externalTrafficPolicy="Local", healthCheckNodePort=30300)
    served = await decide("172.18.0.9", 30300)
    client = Client(b"GET / HTTP/1.1\r\n", b"Host: x\r\n\r\n")
    await served.connect(client)
    assert client.received.startswith(b"HTTP/1.1 " + status)
    assert f'"localEndpoints": {count}'.encode() in client.received
