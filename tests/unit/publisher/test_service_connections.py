"""To which endpoint of a Service a connection leads, and what happens without one."""

import pytest

from mockube.client import kinds
from mockube.component_base.clock import SteppedClock
from mockube.network.services import Outcome, Route, RouteTarget
from mockube.network.view import Peer, peer_of
from mockube.publisher.connections import Connections
from mockube.publisher.service_connections import ServiceConnections, port_of
from tests.support.publishing import VIEWED, PublisherParts

CLIENT = Peer(address="192.0.2.7")
TURN = ("default", "web", 80)


def pod(name, address, **spec):
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "a", "containers": [], **spec},
        "status": {"podIP": address, "hostIP": "10.9.0.1", "phase": "Running"},
    }


def target(tree):
    return RouteTarget(peer=peer_of(tree), port=80, pod=tree)


PODS = [pod("a", "10.0.0.1"), pod("b", "10.0.0.2")]
ROUTE = Route(targets=tuple(map(target, PODS)))


class Cluster(PublisherParts):
    def __init__(self):
        super().__init__()
        self.connections = ServiceConnections(self.context, Connections(SteppedClock()), lambda _: None)
        self.listening = {(name, 80): name for name in ("a", "b")}
        self.sources = []

    def _find_listener(self, pod, port, *, source, **_):
        self.sources.append(source)
        return super()._find_listener(pod, port)

    async def found(self, route=ROUTE, *, keeps_address=False):
        result = await self.connections.find(route, CLIENT, TURN, keeps_address=keeps_address)
        return result if isinstance(result, Outcome) else result[1]


@pytest.fixture
async def cluster():
    made = Cluster()
    made.put(kinds.PODS, *PODS)
    made.put(kinds.NAMESPACES, {"metadata": {"name": "default"}})
    await made.sync(*VIEWED)
    await made.view.wait_synced()
    return made


async def test_endpoints_get_connections_in_turn_from_the_node(cluster):
    assert [await cluster.found() for _ in range(3)] == ["a", "b", "a"]
    assert cluster.sources == ["10.9.0.1"] * 3


async def test_local_traffic_keeps_the_address_of_the_client(cluster):
    await cluster.found(keeps_address=True)
    assert cluster.sources == ["192.0.2.7"]


async def test_endpoint_on_which_nothing_listens_refuses(cluster):
    cluster.listening.clear()
    assert await cluster.found() is Outcome.REFUSED


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.TIMEOUT])
async def test_route_without_endpoint_has_its_outcome(cluster, outcome):
    assert await cluster.found(Route(targets=(), outcome=outcome)) is outcome


async def test_endpoint_that_is_no_pod_refuses(cluster):
    outside = RouteTarget(peer=Peer(address="203.0.113.1"), port=80, pod=None)
    assert await cluster.found(Route(targets=(outside,))) is Outcome.REFUSED


async def test_policies_drop_connections(cluster):
    spec = {"podSelector": {}, "policyTypes": ["Ingress"]}
    cluster.put(kinds.NETWORK_POLICIES, {"metadata": {"name": "none", "namespace": "default"}, "spec": spec})
    assert await cluster.found() is Outcome.TIMEOUT


async def test_policy_of_administrators_drops_connections_and_is_asked_for_once_a_minute(cluster):
    clock = cluster.connections._clock = SteppedClock()
    cluster.policy = "admin"
    assert await cluster.found() is Outcome.TIMEOUT
    cluster.policy = ""
    assert await cluster.found() is Outcome.TIMEOUT
    clock.advance(60)
    assert await cluster.found() == "a"


async def test_pods_of_a_node_are_asked_until_one_has_the_port(cluster):
    hosts = [pod(name, "10.9.0.1", hostNetwork=True) for name in ("x", "b")]
    assert await cluster.found(Route(targets=tuple(map(target, hosts)))) == "b"


def test_port_of_a_service_is_found_by_number_name_and_protocol():
    ports = [
        {"port": 53, "name": "udp", "protocol": "UDP"},
        {"port": 53, "name": "dns"},
        {"port": 80, "name": "http"},
    ]
    service = {"spec": {"ports": ports}}
    assert port_of(service, 53) is ports[1]
    assert port_of(service, "http") is ports[2]
    assert port_of(service, 80, "http") is ports[2]
    assert port_of(service, 80, "dns") is None
    assert (port_of(service, 1), port_of(None, 80)) == (None, None)
