"""What the proxy of Ingresses and Gateways sends to a backend, and what a client gets: heads, framing, and the end of connections."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.streams import StreamsClosed
from mockube.publisher.http_proxy import HttpProxy
from mockube.publisher.http_routing import FixedAnswer, Forward
from mockube.publisher.unfinished_heads import UnfinishedHeads
from tests.support.event_loop import until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Router:
    """Forwards everything to one backend, or gives a fixed answer."""

    def __init__(self, answer=None, **fields):
        self._answer, self._fields = answer, fields
        self.requests = []

    def decide(self, request):
        self.requests.append(request)
        return self._answer or Forward(backend=("default", "a", 80), target=request.target, **self._fields)

    def error_body(self, status):
        return f"page {status}".encode()


class Client:
    """A client that sends some pieces, and then nothing more."""

    def __init__(self, *pieces):
        self.pieces = [*pieces]
        self.received = b""
        self.has_request = False

    def note_request(self, *, has_request):
        self.has_request = has_request

    async def read(self, _limit):
        return self.pieces.pop(0) if self.pieces else b""

    async def write(self, data):
        self.received += data


class Backend:
    """A backend that sends some pieces, each once it has received what it needs for it, and ends its connection."""

    def __init__(self, *pieces, needs=(b"\r\n\r\n",), refuses=False):
        self._pieces, self._needs, self._refuses = [*pieces], [*needs], refuses
        self.received = b""
        self.is_closed = False

    async def read(self, _limit):
        needed = self._needs.pop(0) if self._needs else b""
        await until(lambda: needed in self.received or self.is_closed)
        return self._pieces.pop(0) if self._pieces else b""

    async def write(self, data):
        if self._refuses:
            raise StreamsClosed
        self.received += data

    async def close(self):
        self.is_closed = True


class Proxied:
    """What was sent and received."""

    def __init__(self, client, router, backends):
        self.requests, self.received = router.requests, client.received
        self.backends = backends
        self.has_request = client.has_request
        self.heads = [backend.received.partition(b"\r\n\r\n")[0].decode() for backend in backends]

    @property
    def head(self):
        """The headers that the only backend got, in their order, after the first line."""
        (head,) = self.heads
        first, *lines = head.split("\r\n")
        return first, lines

    @property
    def answer(self):
        """The first line, the headers and the body that the client got."""
        head, _, body = self.received.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        return first, lines, body


async def proxied(*pieces, router=None, backends=None, uses_tls=False):
    client, router = Client(*pieces), router or Router()
    waiting = [Backend(OK) for _ in range(9)] if backends is None else [*backends]
    used = []

    async def open_backend(_):
        backend = waiting.pop(0)
        if not isinstance(backend, int):
            used.append(backend)
        return backend

    head = UnfinishedHeads().of(client.note_request)
    proxy = HttpProxy(client, router, open_backend, SteppedClock(), head)
    await proxy.serve("192.0.2.7", 80, uses_tls=uses_tls)
    assert all(backend.is_closed for backend in used)
    return Proxied(client, router, used)


def get(*lines, target="/", method="GET", version="1.1"):
    head = [f"{method} {target} HTTP/{version}", "Host: a.example", *lines]
    return "\r\n".join([*head, "", ""]).encode()


CLOSE = "Connection: close"


@pytest.mark.parametrize(
    ("lines", "forwarded"),
    [
        pytest.param(["Accept: */*"], ["Accept: */*", CLOSE], id="plain"),
        pytest.param(["X-A: 1", "X-A: 2"], ["X-A: 1", "X-A: 2", CLOSE], id="repeated"),
        pytest.param(["Connection: keep-alive", "Keep-Alive: timeout=5"], [CLOSE], id="kept alive"),
        pytest.param(
            ["Connection: X-A, close", "x-a: 1", "X-B: 2"], ["X-B: 2", CLOSE], id="of the connection"
        ),
        pytest.param(["TE: trailers", "Trailer: X"], [CLOSE], id="trailers"),
        pytest.param(["Proxy-Connection: close", "Proxy-Authorization: x"], [CLOSE], id="of a proxy"),
        pytest.param(["HTTP2-Settings: x", "Expect: x"], [CLOSE], id="of a hop"),
        pytest.param(["Upgrade: websocket"], [CLOSE], id="switch without Connection"),
        pytest.param(
            ["Connection: Upgrade", "Upgrade: websocket, h2c, H2C"],
            ["Connection: Upgrade", "Upgrade: websocket"],
            id="switch",
        ),
        pytest.param(["Connection: upgrade", "Upgrade: h2c"], [CLOSE], id="switch to HTTP/2"),
        pytest.param(["Connection: upgrade"], [CLOSE], id="switch to nothing"),
        pytest.param(["Content-Length: 0"], [CLOSE, "Content-Length: 0"], id="length"),
    ],
)
async def test_backend_gets_the_headers_that_are_not_of_one_connection(lines, forwarded):
    found = await proxied(get(*lines))
    assert found.head == ("GET / HTTP/1.1", ["Host: a.example", *forwarded])


async def test_client_of_http_1_0_does_not_switch_protocols():
    found = await proxied(get("Connection: upgrade", "Upgrade: websocket", version="1.0"))
    assert found.head[1] == ["Host: a.example", CLOSE]


@pytest.mark.parametrize(
    ("fields", "forwarded"),
    [
        pytest.param({"host": "b.test"}, ["Host: b.test", "X-A: 1", CLOSE], id="host"),
        pytest.param({"headers": [("x-a", "2")]}, ["Host: a.example", "x-a: 2", CLOSE], id="replaced"),
        pytest.param({"headers": [("X-A", "")]}, ["Host: a.example", CLOSE], id="removed"),
        pytest.param(
            {"added_headers": [("X-A", "2")]}, ["Host: a.example", "X-A: 1", "X-A: 2", CLOSE], id="added"
        ),
        pytest.param({"added_headers": [("X-B", "")]}, ["Host: a.example", "X-A: 1", CLOSE], id="empty"),
        pytest.param({"headers": [("Upgrade", "x")]}, ["Host: a.example", "X-A: 1", CLOSE], id="own"),
    ],
)
async def test_rules_change_the_headers_of_a_request(fields, forwarded):
    found = await proxied(get("X-A: 1"), router=Router(**fields))
    assert found.head[1] == forwarded


async def test_rules_see_a_request_as_it_is():
    found = await proxied(get("X-A: 1", "x-a: 2", target="/p?q=1", method="POST"), uses_tls=True)
    (request,) = found.requests
    assert (request.method, request.target, request.path, request.query) == ("POST", "/p?q=1", "/p", "?q=1")
    assert (request.host, request.headers["x-a"]) == ("a.example", "1,2")
    assert (request.client, request.port, request.uses_tls) == ("192.0.2.7", 80, True)


@pytest.mark.parametrize(
    ("host", "seen"),
    [("A.Example:8080", "a.example"), ("[::1]:80", "::1"), ("[::A]", "::a"), ("a.example", "a.example")],
)
async def test_host_is_without_its_port(host, seen):
    found = await proxied(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert found.requests[0].host == seen
    assert found.head[1][0] == f"Host: {host}"


async def test_host_of_a_url_counts_before_the_header():
    found = await proxied(get(target="http://b.example/p?q"))
    assert (found.requests[0].host, found.requests[0].target) == ("b.example", "/p?q")
    assert found.head == ("GET /p?q HTTP/1.1", ["Host: b.example", CLOSE])


# --- responses


def answered(*lines, body=b"", status="200 OK"):
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + body


KEPT = "Connection: keep-alive"


@pytest.mark.parametrize(
    ("answer", "lines", "body"),
    [
        pytest.param(answered("Content-Length: 2", body=b"ok"), ["Content-Length: 2"], b"ok", id="length"),
        pytest.param(
            answered("Transfer-Encoding: chunked", body=b"2\r\nok\r\n0\r\n\r\n"),
            ["Transfer-Encoding: chunked"],
            b"2\r\nok\r\n0\r\n\r\n",
            id="chunks",
        ),
        pytest.param(
            answered(body=b"ok"), ["Transfer-Encoding: chunked"], b"2\r\nok\r\n0\r\n\r\n", id="to the end"
        ),
        pytest.param(
            answered("Transfer-Encoding: chunked", "Content-Length: 9", body=b"2\r\nok\r\n0\r\n\r\n"),
            ["Transfer-Encoding: chunked"],
            b"2\r\nok\r\n0\r\n\r\n",
            id="chunks with a length",
        ),
        pytest.param(answered(status="204 No Content"), [], b"", id="no body"),
        pytest.param(
            answered("Connection: X-A", "X-A: 1", "X-B: 2", "Keep-Alive: 5", "Content-Length: 0"),
            ["X-B: 2", "Content-Length: 0"],
            b"",
            id="of the connection",
        ),
        pytest.param(
            answered(status="103 Early Hints") + answered("Content-Length: 0"),
            ["Content-Length: 0"],
            b"",
            id="hints",
        ),
    ],
)
async def test_client_gets_the_response_in_its_own_framing(answer, lines, body):
    first, found, rest = (await proxied(get(), backends=[Backend(answer)])).answer
    assert (first.split()[1], found, rest) == (
        answer.split()[1].decode() if b"103" not in answer else "200",
        lines,
        body,
    )


@pytest.mark.parametrize(
    ("answer", "lines", "body"),
    [
        (OK, ["Content-Length: 2", CLOSE], b"ok"),
        (answered(body=b"ok"), [CLOSE], b"ok"),
        (answered("Transfer-Encoding: chunked", body=b"2\r\nok\r\n0\r\n\r\n"), [CLOSE], b"ok"),
        (
            answered("Transfer-Encoding: chunked", "Content-Length: 9", body=b"2\r\nok\r\n0\r\n\r\n"),
            [CLOSE],
            b"ok",
        ),
    ],
)
async def test_client_of_http_1_0_gets_no_chunks(answer, lines, body):
    found = await proxied(get("Connection: keep-alive", version="1.0"), backends=[Backend(answer)])
    assert found.answer[1:] == (lines, body)


async def test_response_of_head_has_no_body():
    found = await proxied(get(method="HEAD"), backends=[Backend(answered("Content-Length: 5"))])
    assert found.answer[1:] == (["Content-Length: 5"], b"")


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"response_headers": [("server", "own")]}, ["X-A: 1", "server: own"]),
        ({"response_headers": [("Server", "")]}, ["X-A: 1"]),
        ({"added_response_headers": [("X-A", "2")]}, ["Server: b", "X-A: 1", "X-A: 2"]),
    ],
)
async def test_rules_change_the_headers_of_a_response(fields, lines):
    answer = answered("Server: b", "X-A: 1", "Content-Length: 0")
    found = await proxied(get(), router=Router(**fields), backends=[Backend(answer)])
    assert found.answer[1] == [*lines, "Content-Length: 0"]


async def test_reason_of_a_response_stays():
    found = await proxied(get(), backends=[Backend(answered("Content-Length: 0", status="299 Odd"))])
    assert found.answer[0] == "HTTP/1.1 299 Odd"


async def test_requests_of_one_connection_have_backends_of_their_own():
    found = await proxied(get(target="/1") + get(target="/2"), get(CLOSE, target="/3") + get(target="/4"))
    assert [head.split()[1] for head in found.heads] == ["/1", "/2", "/3"]
    assert found.received.count(b"HTTP/1.1 200 OK") == 3


async def test_connection_ends_with_a_response_whose_length_a_client_of_http_1_0_cannot_know():
    found = await proxied(get(version="1.0") + get(target="/2"))
    assert len(found.heads) == 1


@pytest.mark.parametrize(
    ("head", "body", "forwarded"),
    [
        (["Content-Length: 5"], [b"hello"], b"hello"),
        (["Content-Length: 5"], [b"he", b"llo"], b"hello"),
        (["Transfer-Encoding: chunked"], [b"5\r\nhello\r\n0\r\n\r\n"], b"5\r\nhello\r\n0\r\n\r\n"),
        (
            ["Transfer-Encoding: chunked"],
            [b"2\r\nhe\r\n", b"3\r\nllo\r\n0\r\n\r\n"],
            b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ),
    ],
)
async def test_body_of_a_request_is_forwarded(head, body, forwarded):
    backend = Backend(OK, needs=[forwarded])
    found = await proxied(get(*head, method="POST"), *body, backends=[backend])
    assert backend.received.endswith(f"{head[0]}\r\n\r\n".encode() + forwarded)
    assert found.answer[0] == "HTTP/1.1 200 OK"


@pytest.mark.parametrize(("expect", "continues"), [("100-Continue", True), ("other", False)])
async def test_client_that_waits_for_permission_may_send_its_body(expect, continues):
    found = await proxied(get(f"Expect: {expect}", "Content-Length: 2", method="POST"), b"hi")
    assert found.received.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200") is continues


# --- errors


PAGES = {status: f"page {status}".encode() for status in (400, 413, 502, 503)}


@pytest.mark.parametrize(
    ("backends", "status"),
    [
        pytest.param([503], 503, id="no backend"),
        pytest.param([Backend(refuses=True)], 502, id="one that is closed"),
        pytest.param([Backend(b"")], 502, id="one without response"),
        pytest.param([Backend(b"nonsense\r\n\r\n")], 502, id="one that speaks no HTTP"),
    ],
)
async def test_client_gets_a_page_about_a_backend_that_does_not_answer(backends, status):
    first, lines, body = (await proxied(get(), backends=backends)).answer
    assert (int(first.split()[1]), body) == (status, PAGES[status])
    assert lines == [f"Content-Length: {len(body)}", *([] if status == 503 else [CLOSE])]


async def test_rules_that_make_no_head_are_an_error():
    found = await proxied(get(), router=Router(added_headers=[("X-A", "a\r\nb")]))
    assert found.answer[0].split()[1] == "502"


async def test_response_that_breaks_off_ends_the_connection():
    backend = Backend(answered("Content-Length: 5", body=b"he"))
    with pytest.raises(StreamsClosed):
        await proxied(get(), backends=[backend])
    assert backend.is_closed


@pytest.mark.parametrize(
    ("length", "limit", "status"),
    [("5", 5, "200"), ("6", 5, "413"), ("6", 0, "200")],
)
async def test_body_that_is_too_long_is_refused_before_it_is_read(length, limit, status):
    request, body = get(f"Content-Length: {length}", method="POST"), b"x" * int(length)
    backends = [Backend(OK, needs=[body]), Backend(OK)]
    found = await proxied(request, body, get(), router=Router(max_body=limit), backends=backends)
    assert found.answer[0].split()[1] == status
    assert len(found.requests) == (1 if status == "413" else 2)


@pytest.mark.parametrize(("limit", "status"), [(7, "413"), (8, "200"), (0, "200")])
async def test_chunked_body_is_refused_beyond_its_limit(limit, status):
    head, *chunks = (
        get("Transfer-Encoding: chunked", method="POST"),
        b"5\r\nhello\r\n",
        b"3\r\n us\r\n0\r\n\r\n",
    )
    backends = [Backend(OK, needs=[b"0\r\n\r\n"]), Backend(OK)]
    found = await proxied(head, *chunks, get(), router=Router(max_body=limit), backends=backends)
    assert found.answer[0].split()[1] == status
    assert len(found.requests) == (1 if status == "413" else 2)


async def test_backend_gets_a_host_if_its_client_names_none():
    found = await proxied(b"GET / HTTP/1.0\r\n\r\n")
    assert found.heads == ["GET / HTTP/1.1\r\nHost: _\r\nConnection: close"]


async def test_malformed_request_gets_a_page_and_ends_the_connection():
    found = await proxied(b"nonsense\r\n\r\n" + get())
    first, lines, body = found.answer
    assert (first.split()[1], lines, body) == ("400", ["Content-Length: 8", CLOSE], PAGES[400])
    assert found.requests == []


async def test_body_that_is_malformed_is_an_error_of_the_request():
    backends = [Backend(OK, needs=[b"never"])]
    found = await proxied(
        get("Transfer-Encoding: chunked", method="POST"), b"nonsense\r\n", backends=backends
    )
    assert found.answer[0].split()[1] == "400"
    assert found.backends[0].is_closed


# --- fixed answers

MOVED = FixedAnswer(status=301, headers=[("Location", "/new")], body=b"moved")


@pytest.mark.parametrize(
    ("request_head", "lines", "body"),
    [
        (get(), ["Location: /new", "Content-Length: 5"], b"moved"),
        (get(CLOSE), ["Location: /new", "Content-Length: 5", CLOSE], b"moved"),
        (get(version="1.0"), ["Location: /new", "Content-Length: 5", CLOSE], b"moved"),
        (get(method="HEAD"), ["Location: /new", "Content-Length: 5"], b""),
    ],
)
async def test_fixed_answer_says_whether_the_connection_stays_open(request_head, lines, body):
    assert (await proxied(request_head, router=Router(MOVED))).answer == (
        "HTTP/1.1 301 Moved Permanently",
        lines,
        body,
    )


async def test_fixed_answer_is_sent_after_the_body_was_read():
    found = await proxied(
        get("Content-Length: 5", method="POST"), b"he", b"llo" + get(), router=Router(MOVED)
    )
    assert found.received.count(b"HTTP/1.1 301") == 2
    broken = await proxied(get("Content-Length: 5", method="POST"), b"he", router=Router(MOVED))
    assert broken.received.count(b"HTTP/1.1 301") == 1


# --- other protocols


async def test_switched_connection_carries_bytes_in_both_directions():
    request = get("Connection: Upgrade", "Upgrade: echo", method="GET")
    switch = answered("Connection: Upgrade", "Upgrade: echo", "X-A: 1", status="101 S", body=b"first ")
    backend = Backend(switch, b"second", needs=[b"\r\n\r\n", b"more"])
    found = await proxied(request + b"and ", b"more", backends=[backend])
    assert backend.received.partition(b"\r\n\r\n")[2] == b"and more"
    assert found.answer == (
        "HTTP/1.1 101 S",
        ["X-A: 1", "Connection: Upgrade", "Upgrade: echo"],
        b"first second",
    )
    assert not found.has_request


async def test_response_before_the_end_of_a_body_ends_the_exchange():
    class Slow(Client):
        async def read(self, _limit):
            return self.pieces.pop(0) if self.pieces else await asyncio.Event().wait()

    others = asyncio.all_tasks()
    client, backend = Slow(get("Content-Length: 5", method="POST")), Backend(OK)

    async def open_backend(_):
        return backend

    head = UnfinishedHeads().of(client.note_request)
    await HttpProxy(client, Router(), open_backend, SteppedClock(), head).serve(
        "192.0.2.7", 80, uses_tls=False
    )
    assert client.received.startswith(b"HTTP/1.1 200 OK")
    assert (backend.is_closed, asyncio.all_tasks() - others) == (True, set())
