"""The server on a simulated pod's ports: requests one after another, and what it does not understand."""

import ssl
from functools import partial

import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.component_base.clock import SteppedClock
from mockube.component_base.serving_certificates import self_signed_tls_context
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.connections.connection_limits import OpenConnections
from mockube.container_runtime.simulated.connections.port_answers import HttpAnswer, open_port, reply_to
from mockube.container_runtime.simulated.connections.ports import serve_port
from tests.support.images import IMAGES

POD = {
    "metadata": {"namespace": "default", "name": "web"},
    "spec": {"containers": [{"name": "c", "image": "example/web", "ports": [{"containerPort": 80}]}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}}]},
}
CHUNKED = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
GET = b"GET /b HTTP/1.1\r\n\r\n"


class Client:
    """A stream whose client sends pieces, and then nothing more."""

    def __init__(self, *pieces):
        self.pieces = [*pieces]
        self.received = b""

    async def read(self, limit):
        piece = self.pieces.pop(0) if self.pieces else b""
        assert len(piece) <= limit
        return piece

    async def write(self, data):
        self.received += data


class Responses:
    open_port = staticmethod(partial(open_port, IMAGES))

    def __init__(self):
        self.requests = []
        self.connections = OpenConnections(Records(), SteppedClock())

    async def tls_context(self, _pod, _opened):
        return self_signed_tls_context("127.0.0.1", now=SteppedClock().now(), random=SystemRandom())

    async def reply_to(self, _pod, opened, data):
        return reply_to(opened.behavior, data)

    async def respond(self, _pod, _port, _opened, request):
        self.requests.append((request.method, request.path, dict(request.headers)))
        return HttpAnswer(body=b"ok")


async def served(*pieces, tree=POD, port=80):
    client, responses = Client(*pieces), Responses()
    await serve_port(tree, port, responses, client)
    return responses.requests, client.received


def database(image):
    return {**POD, "spec": {"containers": [{"name": "c", "image": image}]}}


@pytest.mark.parametrize(
    ("image", "version"), [("mysql:8.4", b"8."), ("mariadb:11.8", b"5.5.5-11.8.2-MariaDB\0")]
)
async def test_server_that_speaks_first_greets_its_client(image, version):
    _, received = await served(tree=database(image), port=3306)
    assert received[3:].startswith(b"\0\n" + version)
    assert len(received) == 4 + received[0]


async def test_server_that_waits_replies_to_its_client():
    assert await served(b"PING\r\n", tree=database("redis:8"), port=6379) == ([], b"+PONG\r\n")
    assert await served(tree=database("redis:8"), port=6379) == ([], b"")


@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_request_behind_chunked_body_is_answered(size):
    sent = CHUNKED + GET
    requests, received = await served(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert [request[:2] for request in requests] == [("POST", "/a"), ("GET", "/b")]
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 2


async def test_connection_is_closed_if_client_wants_that():
    requests, received = await served(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + GET)
    assert len(requests) == 1
    assert b"\r\nConnection: close\r\n" in received


async def test_headers_of_request_have_lower_case_names():
    requests, _ = await served(GET.replace(b"\r\n\r\n", b"\r\nHOST: a.example\r\nX-Y:  z \r\n\r\n"))
    assert requests == [("GET", "/b", {"host": "a.example", "x-y": "z"})]


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        pytest.param(b"PRI * HTTP/2.0\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n", id="another version"),
        pytest.param(b"FOO / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n", id="another method"),
        pytest.param(
            b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"HTTP/1.1 400 ",
            id="two lengths",
        ),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01", b"", id="TLS"),
    ],
)
async def test_malformed_request_ends_connection(sent, received):
    requests, answer = await served(sent, GET)
    assert not requests
    assert answer.startswith(received)
    assert bool(answer) == bool(received)


async def test_incomplete_request_is_not_answered():
    assert await served(b"GET / HTTP/1.1\r\n") == ([], b"")


async def test_endless_head_ends_connection():
    requests, answer = await served(b"GET / HTTP/1.1\r\nX: ", *[b"a" * 4096] * 20)
    assert (requests, answer) == ([], b"")


async def test_line_that_is_no_request_is_refused_before_the_headers():
    requests, received = await served(b"hostName\n", tree=database("nginx"))
    assert not requests
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert received.endswith(b"400 Bad Request")


@pytest.mark.parametrize("sent", [b"hostName\n", b"hostName", b"\0\1\2\n"])
async def test_client_that_speaks_no_http_gets_the_line_that_says_what_does_not_run(sent):
    line = b"mockube: pod default/web is simulated, but not the image example/web\n"
    assert await served(sent) == ([], line)


class TlsClient:
    """A client within TLS: what the server sends goes into its connection, and what that answers comes back."""

    def __init__(self, data):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)
        self.data = data
        self.received = b""
        self.step()

    def step(self):
        try:
            self.tls.do_handshake()
            if self.data:
                self.tls.write(self.data)
                self.data = b""
            self.received += self.tls.read(1 << 16)
        except ssl.SSLWantReadError:
            pass

    async def read(self, limit):
        return self.outgoing.read(limit)

    async def write(self, data):
        self.incoming.write(data)
        self.step()


TLS_POD = {
    **POD,
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "agnhost",
                "args": ["porter"],
                "env": [{"name": "SERVE_TLS_PORT_443", "value": "x"}],
            }
        ]
    },
}


async def test_server_with_a_certificate_of_its_own_answers_within_tls():
    client, responses = TlsClient(GET), Responses()
    await serve_port(TLS_POD, 443, responses, client)
    assert responses.requests == [("GET", "/b", {})]
    assert client.received.endswith(b"\r\n\r\nok")


async def test_bytes_that_are_no_tls_end_the_connection():
    client, responses = Client(b"\x16garbage"), Responses()
    await serve_port(TLS_POD, 443, responses, client)
    assert not responses.requests
