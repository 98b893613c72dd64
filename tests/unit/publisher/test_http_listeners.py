"""The two ports of Ingresses and Gateways: when they are open, what serves a client there, and where a request leads."""

import asyncio
import ssl

import pytest

from mockube.client import kinds
from mockube.component_base.clock import SteppedClock
from mockube.component_base.tls_stream import TlsStream
from mockube.network.services import Outcome
from mockube.network.view import Peer
from mockube.publisher import http_listeners
from mockube.publisher.bindings import Endpoint
from mockube.publisher.certificates import certificate_of
from mockube.publisher.connections import Connections
from mockube.publisher.http_listeners import HttpListeners, SeveralRouters
from mockube.publisher.http_routing import FixedAnswer, Forward
from mockube.publisher.listeners import Listening
from mockube.publisher.sockets import NoSocket
from tests.support.event_loop import yield_to_loop
from tests.support.publishing import ADDRESS, VIEWED, PublisherParts
from tests.unit.publisher.test_gateways import pair, secret
from tests.unit.publisher.test_ingress_routing import request

__all__ = ["pair"]


class Router:
    def __init__(self, *answers, name="router"):
        self.answers, self.name = [*answers], name
        self.requests = []

    def decide(self, asked):
        self.requests.append(asked)
        return self.answers[0]

    def error_body(self, status):
        return f"{self.name} {status}".encode()


MISSING, FOUND = FixedAnswer(status=404, body=b"none"), FixedAnswer(status=204)
FORWARD = Forward(backend=("default", "web", 80), target="/")


@pytest.mark.parametrize(
    ("answers", "index"),
    [
        ([FOUND, FORWARD], 1),
        ([FOUND, MISSING], 0),
        ([MISSING, FORWARD], 1),
        ([FixedAnswer(status=404, body=b"first"), MISSING], 0),
    ],
)
def test_last_router_with_a_rule_decides_or_else_the_first_one(answers, index):
    routers = [Router(answer, name=str(number)) for number, answer in enumerate(answers)]
    several = SeveralRouters(routers)
    assert several.decide(request()) is answers[index]
    assert several.error_body(502) == b"0 502"


class FakeListeners:
    """Listeners that open no sockets. `problems` are those of ports by their key."""

    def __init__(self):
        self.connections = Connections(SteppedClock())
        self.opened, self.serves, self.problems = {}, {}, {}

    def find(self, key):
        return self.opened.get(key)

    async def open(self, key, address, candidates, serve):
        if key in self.problems and not self.problems[key].endswith("taken"):
            raise NoSocket(self.problems[key])
        self.serves[key] = serve
        self.opened[key] = Listening(Endpoint(address, candidates[0] or 8080), self.problems.get(key, ""))
        return self.opened[key]

    def close(self, key):
        self.opened.pop(key, None)


class FakeRecord:
    def __init__(self):
        self.values = {}

    def note(self, key, value):
        self.values[key] = value

    def forget(self, key):
        self.values.pop(key, None)


class FakeServices:
    """What finds an endpoint of a Service."""

    def __init__(self):
        self.result, self.asked = Outcome.REFUSED, []

    async def find(self, route, peer, turn, *, keeps_address):
        self.asked.append(([target.port for target in route.targets], peer, turn, keeps_address))
        return self.result


class Ports(PublisherParts):
    def __init__(self):
        super().__init__()
        self.listeners, self.record, self.services = FakeListeners(), FakeRecord(), FakeServices()
        self.http = HttpListeners(self.context, self.listeners, self.record, self.services)


@pytest.fixture
def ports():
    return Ports()


async def test_ports_are_open_from_the_first_user_to_the_last(ports):
    assert ports.http.endpoint(uses_tls=False) is None
    assert await ports.http.use("a") == ""
    assert await ports.http.use("b") == ""
    assert sorted(ports.listeners.opened) == ["http", "https"]
    assert ports.record.values == {"http": f"{ADDRESS}:8080", "https": f"{ADDRESS}:8080"}
    assert ports.http.endpoint(uses_tls=False) is ports.listeners.opened["http"].endpoint
    assert ports.http.endpoint(uses_tls=True) is ports.listeners.opened["https"].endpoint
    ports.http.release("a")
    assert sorted(ports.listeners.opened) == ["http", "https"]
    ports.http.release("b")
    assert (ports.listeners.opened, ports.record.values) == ({}, {})


async def test_replaced_and_missing_ports_are_told(ports):
    ports.listeners.problems = {"http": "port 80 is taken", "https": "no rights"}
    assert await ports.http.use("a") == f"port 80 is taken: HTTP is served at {ADDRESS}:8080; no rights"
    assert ports.record.values == {"http": f"{ADDRESS}:8080", "https": "none: no rights"}


class Socket:
    """A client's connection in memory."""

    def __init__(self, sent=b""):
        self.address = "192.0.2.7"
        self.queue, self.received, self.has_ended = asyncio.Queue(), b"", False
        self.answers = asyncio.Queue()
        if sent:
            self.queue.put_nowait(sent)
            self.queue.put_nowait(b"")

    async def read(self, _limit):
        return await self.queue.get()

    async def write(self, data):
        self.received += data
        self.answers.put_nowait(data)

    async def end(self):
        self.has_ended = True
        self.answers.put_nowait(b"")


class ClientSide:
    """The other side of a socket."""

    def __init__(self, socket):
        self._socket = socket

    async def read(self, _limit):
        return await self._socket.answers.get()

    async def write(self, data):
        self._socket.queue.put_nowait(data)

    async def end(self):
        self._socket.queue.put_nowait(b"")


GET = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


async def test_client_is_served_by_all_routers_at_its_port(ports):
    first, second = Router(FOUND), Router(MISSING)
    for router in (first, second):
        ports.http.add_router(router, lambda _: None)
    await ports.http.use("a")
    client = Socket(GET)
    await ports.listeners.serves["http"](client)
    assert client.received.startswith(b"HTTP/1.1 204 ")
    assert not client.has_ended
    (asked,) = first.requests
    assert (asked.client, asked.port, asked.uses_tls) == ("192.0.2.7", 8080, False)
    ports.http.release("a")
    await ports.listeners.serves["http"](Socket(GET))
    assert first.requests[-1].port == 0


async def served_with_tls(ports, name="shop.example"):
    """Return the certificate that a client gets, and the response."""
    await ports.http.use("a")
    client = Socket()
    serving = asyncio.create_task(ports.listeners.serves["https"](client))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    stream = TlsStream(ClientSide(client), context, is_server=False, host=name)
    await stream.handshake()
    await stream.write(GET)
    answer = await stream.read(999)
    sent = len(client.received)
    await stream.end()
    await serving
    assert len(client.received) > sent, "the end of TLS"
    return stream._tls.getpeercert(binary_form=True), answer


async def test_port_with_tls_has_the_certificate_of_the_name(ports, pair):
    own = certificate_of(secret(pair)).context
    router = Router(FOUND)
    ports.http.add_router(router, lambda _: None)
    ports.http.add_router(router, lambda host: own if host == "shop.example" else None)
    certificate, answer = await served_with_tls(ports)
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert router.requests[0].uses_tls
    fake, _ = await served_with_tls(ports, "other.example")
    assert b"Fake Certificate" in fake
    assert b"Fake Certificate" not in certificate


async def test_client_that_speaks_no_tls_or_nothing_is_left(ports):
    ports.http.add_router(Router(FOUND), lambda _: None)
    await ports.http.use("a")
    plain = Socket(GET)
    await ports.listeners.serves["https"](plain)
    assert b"204" not in plain.received
    silent = Socket()
    ports.http._clock = clock = SteppedClock()
    serving = asyncio.create_task(ports.listeners.serves["https"](silent))
    await yield_to_loop(5)
    assert not serving.done()
    clock.advance(http_listeners._HANDSHAKE_SECONDS)
    await serving


# --- backends

PEER = Peer(address="192.0.2.7")


def pod(name="web-1"):
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "a", "containers": []},
        "status": {"podIP": "10.0.0.1", "hostIP": "10.9.0.1", "phase": "Running"},
    }


def service(**spec):
    own = {"clusterIP": "10.1.0.1", "ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "web"}}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {**own, **spec}}


def endpoint_slice():
    reference = {"kind": "Pod", "name": "web-1", "namespace": "default", "uid": "web-1"}
    endpoint = {"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "targetRef": reference}
    labels = {"kubernetes.io/service-name": "web"}
    return {
        "metadata": {"name": "web-x", "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [endpoint],
        "ports": [{"port": 8080, "protocol": "TCP", "name": ""}],
    }


async def opened(ports, *trees, peer=PEER, forward=FORWARD):
    for tree in trees:
        ports.put(kinds.ENDPOINT_SLICES if "endpoints" in tree else kinds.SERVICES, tree)
    ports.put(kinds.PODS, pod())
    await ports.sync(*VIEWED)
    found = await ports.http._open_backend(peer, forward)
    if not isinstance(found, int):
        await found.close()
        return type(found).__name__
    return found


async def connect(_):
    pass


@pytest.mark.parametrize(
    ("trees", "result", "expected"),
    [
        pytest.param([], None, 503, id="no Service"),
        pytest.param([service(ports=[{"port": 81}]), endpoint_slice()], None, 503, id="no port"),
        pytest.param(
            [service(type="ExternalName", externalName="x"), endpoint_slice()], None, 503, id="alias"
        ),
        pytest.param([service()], None, 503, id="no endpoint"),
        pytest.param([service(), endpoint_slice()], Outcome.TIMEOUT, 504, id="dropped"),
        pytest.param([service(), endpoint_slice()], Outcome.REFUSED, 502, id="refused"),
        pytest.param([service(), endpoint_slice()], (None, connect), "PodConnection", id="connected"),
    ],
)
async def test_request_leads_to_an_endpoint_of_its_service(ports, trees, result, expected):
    ports.services.result = result
    assert await opened(ports, *trees) == expected
    assert len(ports.services.asked) == (result is not None)


async def test_proxy_in_a_pod_keeps_its_address(ports):
    await opened(ports, service(), endpoint_slice())
    await opened(ports, peer=Peer(address="10.0.0.9", pod=pod("proxy")))
    assert [(asked[0], asked[2], asked[3]) for asked in ports.services.asked] == [
        ([8080], ("default", "web", 80), False),
        ([8080], ("default", "web", 80), True),
    ]


async def test_request_waits_for_what_is_known_of_the_network(ports):
    opening = asyncio.create_task(ports.http._open_backend(PEER, FORWARD))
    await yield_to_loop(5)
    assert not opening.done()
    await ports.sync(*VIEWED)
    assert await opening == 503
