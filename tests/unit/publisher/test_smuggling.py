"""Requests that a backend could take for other ones: what the proxy of Ingresses forwards of them."""

import pytest
from msgspec import structs

from mockube.component_base.clock import SteppedClock
from mockube.publisher.http_proxy import HttpProxy
from mockube.publisher.http_routing import FixedAnswer, Forward
from mockube.publisher.unfinished_heads import UnfinishedHeads
from tests.support.event_loop import until
from tests.support.smuggling.cases import FORBIDDEN, RecordingBackend, cases, methods_of, statuses_in


class PublicRouter:
    def decide(self, request):
        if request.host != "a.example" or not request.path.startswith("/public/"):
            return FixedAnswer(status=FORBIDDEN)
        return Forward(backend=("default", "a", 80), target=request.target)

    def error_body(self, status):
        return str(status).encode()


class Client:
    def __init__(self, pieces):
        self.pieces = [*pieces]
        self.received = b""

    async def read(self, _limit):
        return self.pieces.pop(0) if self.pieces else b""

    async def write(self, data):
        self.received += data


class Connection:
    """A connection to a backend, without a network."""

    def __init__(self, backend):
        self.backend = backend
        self.rest = self.answers = b""
        self.is_closed = False

    async def read(self, _limit):
        await until(lambda: self.answers or self.is_closed)
        answers, self.answers = self.answers, b""
        return answers

    async def write(self, data):
        answers, self.rest = self.backend.receive(self.rest + data)
        self.answers += answers

    async def end(self):
        pass

    async def close(self):
        if not self.is_closed:
            self.is_closed = True
            self.backend.rests.append(self.rest)


async def proxied(case, pieces):
    """Return the statuses that a client gets, and what the backends get."""
    backend, client = RecordingBackend(), Client(pieces)

    async def open_backend(forward):
        return Connection(backend)

    proxy = HttpProxy(
        client, PublicRouter(), open_backend, SteppedClock(), UnfinishedHeads().of(lambda **_: None)
    )
    await proxy.serve("192.0.2.7", 80, uses_tls=False)
    return statuses_in(client.received, methods_of(case)), backend.forwarded(case.host)


@pytest.mark.thorough
@pytest.mark.parametrize("case", cases("publisher"))
async def test_request_is_refused_or_forwarded_in_one_form(case):
    assert await proxied(case, [case.send]) == (case.statuses, case.forwarded)


@pytest.mark.parametrize("case", cases("publisher")[::9])
async def test_pieces_of_a_request_do_not_matter(case):
    pieces = [case.send[at : at + 1] for at in range(len(case.send))]
    assert await proxied(case, pieces) == (case.statuses, case.forwarded)


MORE_THAN_ORIGINAL = {"expectations: twice"}
"""Cases of which more passes than with nginx, which also refuses what is repeated and means the same."""


@pytest.mark.parametrize("case", [each for each in cases("publisher") if each.id not in MORE_THAN_ORIGINAL])
def test_no_request_passes_that_nginx_refuses(case):
    assert len(case.forwarded) <= case.original.count(200)


class FixedConnection(Connection):
    """Answers every request with the same bytes."""

    def __init__(self, answer):
        super().__init__(RecordingBackend())
        self.answers = answer
        self.is_closed = True

    async def write(self, data):
        pass


SWITCH = b"GET /public/a HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: echo, x\r\n\r\n"
GET = b"GET /public/a HTTP/1.1\r\nHost: a.example\r\n\r\n"
OTHER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"


@pytest.mark.parametrize(
    ("sent", "answer", "received"),
    [
        pytest.param(GET, b"101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw", b"502", id="switch, not requested"),
        pytest.param(SWITCH, b"101 S\r\nConnection: Upgrade\r\nUpgrade: y\r\n\r\nraw", b"502", id="another switch"),
        pytest.param(GET, b"101 S\r\n\r\nraw", b"502", id="switch to nothing, not requested"),
        pytest.param(SWITCH, b"101 S\r\n\r\nraw", b"502", id="switch to nothing"),
        pytest.param(SWITCH, b"101 S\r\nUpgrade: X\r\n\r\nraw", b"Upgrade: X\r\n\r\nraw", id="switch"),
        pytest.param(GET, b"200 OK\r\nContent-Length: 2, 2\r\n\r\nok", b"Content-Length: 2\r\n\r\nok", id="list of a length"),
        pytest.param(GET, b"200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", b"502", id="two lengths"),
        pytest.param(GET, b"200 OK\r\nTransfer-Encoding: x\r\n\r\nok", b"502", id="encoding"),
        pytest.param(GET, b"200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok", b"X: a b\r\nContent-Length: 2\r\n\r\nok", id="fold"),
        pytest.param(GET, b"200 OK\r\nConnection: x-a\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nok", b"200 OK\r\nContent-Length: 2\r\n\r\nok", id="of the connection"),
        pytest.param(GET, b"200 OK\r\nContent-Length: 2\r\n\r\nok" + OTHER, b"200 OK\r\nContent-Length: 2\r\n\r\nok", id="a second response"),
        pytest.param(GET.replace(b"GET", b"HEAD"), b"200 OK\r\nContent-Length: 5, 6\r\n\r\n", b"200 OK\r\n\r\n", id="no length of HEAD"),
        pytest.param(GET.replace(b"GET", b"HEAD"), b"200 OK\r\nContent-Length: 5\r\n\r\n", b"Content-Length: 5\r\n\r\n", id="length of HEAD"),
    ],
)  # fmt: skip
async def test_response_is_refused_or_returned_in_one_form(sent, answer, received):
    client = Client([sent])

    async def open_backend(forward):
        return FixedConnection(b"HTTP/1.1 " + answer)

    proxy = HttpProxy(
        client, PublicRouter(), open_backend, SteppedClock(), UnfinishedHeads().of(lambda **_: None)
    )
    await proxy.serve("192.0.2.7", 80, uses_tls=False)
    assert client.received.endswith(received)
    assert client.received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Host", "Connection"])
async def test_rules_do_not_set_what_frames_a_message(name):
    header = [(name, "5")]

    class Router(PublicRouter):
        def decide(self, request):
            return structs.replace(
                super().decide(request),
                headers=header,
                added_headers=header,
                response_headers=header,
                added_response_headers=header,
            )

    backend, client = RecordingBackend(), Client([GET])

    async def open_backend(forward):
        return Connection(backend)

    await HttpProxy(
        client, Router(), open_backend, SteppedClock(), UnfinishedHeads().of(lambda **_: None)
    ).serve("192.0.2.7", 80, uses_tls=False)
    assert (statuses_in(client.received, ["GET"]), backend.forwarded("a.example")) == (
        [200],
        [("GET /public/a", {}, b"")],
    )
