"""To which endpoint of a Service a connection leads, and what happens without one."""

import asyncio

import pytest

from mockube.client import kinds
from mockube.component_base.clock import SteppedClock
from mockube.network.services import Outcome, Route, RouteTarget
from mockube.network.view import Peer, peer_of
from mockube.publisher import limits
from mockube.publisher.bindings import PublishedPort
from mockube.publisher.connections import Connections
from mockube.publisher.service_connections import ServiceConnections, port_of
from tests.support.event_loop import yield_to_loop
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


class Socket:
    """A client's connection that records what becomes of it, and sends some pieces."""

    address = "192.0.2.7"

    def __init__(self, *pieces):
        self.fate, self._pieces = [], [*pieces]

    def reset(self):
        self.fate.append("reset")

    async def read(self, _):
        if not self._pieces:
            await asyncio.Event().wait()
        return self._pieces.pop(0)


def published(port=80, **fields):
    own = {"namespace": "default", "service": "web", "name": "", "address": "127.0.0.1", "candidates": (1,)}
    return PublishedPort(port=port, **{"node_port": 30080, **own, **fields})


def service(**spec):
    own = {
        "type": "NodePort",
        "clusterIP": "10.1.0.1",
        "ports": [{"port": 80, "targetPort": 80, "nodePort": 30080}],
        "selector": {"app": "web"},
    }
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {**own, **spec}}


def endpoint_slice(*names):
    endpoints = [
        {
            "addresses": [tree["status"]["podIP"]],
            "conditions": {"ready": True},
            "nodeName": "a",
            "targetRef": {"kind": "Pod", "name": name, "namespace": "default", "uid": name},
        }
        for name, tree in zip("ab", PODS, strict=True)
        if name in names
    ]
    labels = {"kubernetes.io/service-name": "web"}
    return {
        "metadata": {"name": "web-x", "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"port": 80, "protocol": "TCP", "name": ""}],
    }


class Serving(Cluster):
    """A Service with a pod, to which a connection is served in a task of its own."""

    def __init__(self):
        super().__init__()
        self.clock = SteppedClock()
        self.all = Connections(self.clock)
        self.proxy, self.served = None, []
        self.connections = ServiceConnections(self.context, self.all, lambda _: self.proxy)
        self.connections._clock = self.clock
        self.refuses = False

        async def connect(connection):
            self.served.append(connection)
            return self.refuses

        self.listening = {("a", 80): connect}

    async def serve(self, port=None, socket=None):
        socket = socket or Socket()
        task = asyncio.create_task(self.connections.serve(port or published(), socket))
        await yield_to_loop(20)
        return socket, task


@pytest.fixture
async def serving():
    made = Serving()
    made.put(kinds.PODS, *PODS)
    made.put(kinds.NAMESPACES, {"metadata": {"name": "default"}})
    made.put(kinds.SERVICES, service())
    made.put(kinds.ENDPOINT_SLICES, endpoint_slice("a"))
    await made.sync(*VIEWED)
    return made


async def test_connection_leads_to_the_pod_of_a_service_with_which_it_breaks(serving):
    socket, task = await serving.serve()
    assert (serving.served, socket.fate) == ([socket], [])
    await task
    assert not serving.all.leads_to("a")
    waiting = asyncio.Event()

    async def connect(_):
        assert serving.all.leads_to("a")
        await waiting.wait()

    serving.listening["a", 80] = connect
    _, task = await serving.serve()
    assert serving.all.leads_to("a")
    waiting.set()
    await task


async def test_connection_that_the_program_refuses_is_reset(serving):
    serving.refuses = True
    socket, _ = await serving.serve()
    assert socket.fate == ["reset"]


async def test_proxy_serves_connections_to_its_pod(serving):
    proxied = []

    async def proxy(connection):
        proxied.append(connection)

    serving.proxy = proxy
    socket, _ = await serving.serve()
    assert (proxied, serving.served, socket.fate) == ([socket], [], [])


@pytest.mark.parametrize(
    "port",
    [published(service="other"), published(port=81), published(name="other"), published(namespace="x")],
)
async def test_connection_to_a_port_that_has_gone_is_reset(serving, port):
    socket, _ = await serving.serve(port)
    assert (socket.fate, serving.served) == (["reset"], [])


async def test_connection_without_endpoint_is_reset(serving):
    serving.put(kinds.ENDPOINT_SLICES, endpoint_slice())
    socket, _ = await serving.serve()
    assert socket.fate == ["reset"]


async def test_dropped_connection_stays_open_until_its_client_runs_out_of_time(serving):
    serving.policy = "admin"
    socket, task = await serving.serve(socket=Socket(b"x"))
    serving.clock.advance(limits.DROP_SECONDS - 1)
    await yield_to_loop(5)
    assert (task.done(), socket.fate) == (False, [])
    serving.clock.advance(1)
    await task
    assert socket.fate == ["reset"]


async def test_dropped_connection_ends_with_its_client(serving):
    serving.policy = "admin"
    socket, task = await serving.serve(socket=Socket(b"x", b""))
    await task
    assert socket.fate == ["reset"]


async def test_local_traffic_policy_keeps_the_address(serving):
    serving.put(kinds.SERVICES, service(externalTrafficPolicy="Local"))
    await serving.serve()
    serving.put(kinds.SERVICES, service())
    await serving.serve()
    assert serving.sources == ["192.0.2.7", "10.9.0.1"]


async def test_connection_waits_for_what_is_known_of_the_network():
    made = Serving()
    socket, task = await made.serve()
    assert (socket.fate, task.done()) == ([], False)
    await made.sync(*VIEWED)
    await task
    assert socket.fate == ["reset"]


async def test_source_ranges_of_a_load_balancer_drop_others(serving):
    tree = service(type="LoadBalancer", loadBalancerSourceRanges=["10.0.0.0/8"])
    serving.put(kinds.SERVICES, tree)
    _, task = await serving.serve(published(node_port=0))
    assert (serving.served, task.done()) == ([], False)
    task.cancel()
    await serving.serve()
    assert len(serving.served) == 1, "node ports have no ranges"
