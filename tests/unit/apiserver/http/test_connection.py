"""Parsing of a connection: limits of heads and bodies, timeouts, and the order of pipelined requests."""

import asyncio
import time

import pytest

from mockube.apimachinery.status import BadRequest
from mockube.apiserver.http import connection
from mockube.apiserver.http.connection import HEAD_BYTES, HEADERS, NO_DATA
from mockube.apiserver.http.server import ALL_HEADS_BYTES, HEAD_SECONDS, SWEEP_SECONDS, Server
from mockube.apiserver.request.response import text_response
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.fake_transport import FakeTransport

START = b"GET / HTTP/1.1\r\nHost: x\r\n"
GET = START + b"\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


class RecordingServer:
    """A server whose handler records each request, and responds when the test allows it."""

    def __init__(self):
        self.clock = SteppedClock()
        self.requests = []
        self.bodies = []
        self.going = asyncio.Event()
        self.going.set()
        self.server = Server(self._handle, clock=self.clock)

    async def _handle(self, request):
        self.requests.append(request)
        if request.path == "/authenticated":
            request.client.set_authenticated()
        if request.path == "/page":
            request.client.set_unauthenticated()
        await self.going.wait()
        try:
            self.bodies.append(await request.client.read(1 << 20))
        except BadRequest as error:
            self.bodies.append(error)
        return text_response("done")

    def wire(self):
        return FakeTransport(self.server())


@pytest.fixture
async def recording_server():
    recording_server = RecordingServer()
    yield recording_server
    await recording_server.server.shutdown(0.01)


def split(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize(("path", "count"), [(b"/", 0), (b"/page", 1)])
async def test_connection_counts_as_unauthenticated_while_page_is_served(recording_server, path, count):
    recording_server.going.clear()
    unauthenticated = recording_server.server.unauthenticated
    wire = recording_server.wire()
    wire.receive(GET.replace(b"/", path, 1))
    await until(lambda: recording_server.requests)
    assert len(unauthenticated) == count
    recording_server.going.set()
    await until(lambda: recording_server.bodies)
    await yield_to_loop(20)
    assert len(unauthenticated) == 1


async def test_body_whose_malformed_chunk_arrives_later_ends(recording_server):
    wire = recording_server.wire()
    wire.receive(CHUNKED)
    await until(lambda: recording_server.requests)
    wire.receive(b"x\r\n")
    await until(lambda: recording_server.bodies)
    assert isinstance(recording_server.bodies[0], BadRequest)
    await until(lambda: wire.is_closed)


@pytest.mark.parametrize("before", [GET, START.replace(b"GET", b"POST") + b"Content-Length: 2\r\n\r\nok"])
async def test_second_request_with_two_blanks_is_refused_behind_first(recording_server, before):
    wire = recording_server.wire()
    wire.receive(before)
    await until(lambda: recording_server.bodies)
    wire.receive(GET.replace(b"GET ", b"GET  "))
    await until(lambda: b" 400 Bad Request" in wire.sent)
    assert len(recording_server.requests) == 1


async def test_page_for_authenticated_connection_does_not_count_as_unauthenticated(recording_server):
    wire = recording_server.wire()
    wire.receive(GET.replace(b"/", b"/authenticated", 1))
    await until(lambda: recording_server.bodies)
    recording_server.going.clear()
    wire.receive(GET.replace(b"/", b"/page", 1))
    await until(lambda: len(recording_server.requests) == 2)
    assert len(recording_server.server.unauthenticated) == 0
    recording_server.going.set()


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
async def test_request_head_may_arrive_in_any_pieces(recording_server, size):
    wire = recording_server.wire()
    wire.receive(*split(GET + CHUNKED + b"2\r\n{}\r\n0\r\n\r\n" + GET, size))
    await yield_to_loop(20)
    assert [request.method for request in recording_server.requests] == ["GET", "POST", "GET"]
    assert recording_server.bodies == [b"", b"{}", b""]
    assert recording_server.server.head_bytes == 0


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
async def test_request_with_any_method_may_arrive_in_any_pieces(recording_server, size):
    wire = recording_server.wire()
    for method in (b"FOO", b"get", b"CONNECT", b"A-METHOD-OF-MORE-THAN-16-BYTES"):
        wire.receive(*split(GET.replace(b"GET", method), size))
        await yield_to_loop(20)
    assert [request.method for request in recording_server.requests] == [
        *("FOO", "get", "CONNECT", "A-METHOD-OF-MORE-THAN-16-BYTES")
    ]
    assert recording_server.server.head_bytes == 0
    assert wire.sent.count(b"HTTP/1.1 200 OK\r\n") == 4


@pytest.mark.parametrize("end", [4, 3, 2, 1])
async def test_end_of_head_may_arrive_byte_by_byte(recording_server, end):
    wire = recording_server.wire()
    wire.receive(GET[:3], GET[3:6], GET[6:-end], *split(GET[-end:], 1))
    await yield_to_loop(20)
    assert [request.method for request in recording_server.requests] == ["GET"]


async def test_body_of_request_with_any_method_is_read(recording_server):
    wire = recording_server.wire()
    wire.receive(CHUNKED.replace(b"POST", b"FOO") + b"2\r\n{}\r\n0\r\n\r\n" + GET)
    await yield_to_loop(20)
    assert [request.method for request in recording_server.requests] == ["FOO", "GET"]
    assert recording_server.bodies == [b"{}", b""]


@pytest.mark.parametrize("beginning", [b"G", b"GE", b"GET", b"GET /"])
async def test_rest_of_pipelined_head_is_not_read_as_method(recording_server, beginning):
    wire = recording_server.wire()
    wire.receive(GET + beginning)
    await yield_to_loop(20)
    wire.receive(GET.removeprefix(beginning))
    await yield_to_loop(20)
    assert [(request.method, request.path) for request in recording_server.requests] == [("GET", "/")] * 2


async def test_rest_of_head_behind_body_is_not_read_as_method(recording_server):
    wire = recording_server.wire()
    wire.receive(CHUNKED.replace(b"Transfer-Encoding: chunked", b"Content-Length: 2") + b"{}" + b"GE")
    await yield_to_loop(20)
    wire.receive(GET.removeprefix(b"GE"))
    await yield_to_loop(20)
    assert [request.method for request in recording_server.requests] == ["POST", "GET"]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([b"X: %b" % (b"a" * 1_000_000)], id="one that is long"),
        pytest.param([b"X%d: %b" % (number, b"a" * 100) for number in range(9_000)], id="many"),
        pytest.param([b"X%d: a" % number for number in range(5_000)], id="more than 128"),
    ],
)
async def test_head_of_one_mebibyte_is_accepted(recording_server, headers):
    wire = recording_server.wire()
    wire.receive(*split(START + b"\r\n".join(headers) + b"\r\n\r\n", 65_536))
    await yield_to_loop(20)
    assert len(recording_server.requests) == 1
    assert wire.sent.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("piece", [65_536, 1_000_000])
async def test_lines_of_body_are_not_counted_as_headers(recording_server, piece):
    wire = recording_server.wire()
    head = START + b"Content-Length: %d\r\n\r\n" % (4 * HEADERS)
    wire.receive(head[:9], *split(head[9:] + b"\n" * 4 * HEADERS, piece))
    await yield_to_loop(20)
    assert len(recording_server.requests) == 1


@pytest.mark.parametrize("piece", [65_536, 1_000_000])
async def test_too_many_headers_are_refused(recording_server, piece):
    wire = recording_server.wire()
    lines = b"".join(b"X%d: a\r\n" % number for number in range(HEADERS))
    wire.receive(*split(START + lines + b"\r\n", piece))
    await yield_to_loop(20)
    assert not recording_server.requests
    assert wire.sent.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"Connection: close\r\n" in wire.sent


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"X: " + b"a" * 70_000, id="a long one"),
        pytest.param(b"X: " + b"a" * 7_000 + b"\r\n", id="long ones"),
        pytest.param(b"X: a\r\n", id="short ones"),
        pytest.param(b"X", id="a long name"),
    ],
)
async def test_longer_head_is_refused(recording_server, header):
    wire = recording_server.wire()
    wire.receive(START)
    wire.receive(*split(header * (HEAD_BYTES // len(header) + 2), 65_536))
    assert wire.protocol.server.head_bytes == 0
    await yield_to_loop(20)
    assert wire.sent.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert wire.sent.endswith(b"\r\n\r\n431 Request Header Fields Too Large")
    assert b"Connection: close\r\n" in wire.sent
    assert recording_server.requests == []
    wire.receive(b"a" * 1000)
    recording_server.clock.advance(connection.LINGER_SECONDS)
    await yield_to_loop(20)
    assert wire.is_closed


async def test_request_line_counts_as_head(recording_server):
    wire = recording_server.wire()
    wire.receive(*split(b"GET /" + b"a" * (HEAD_BYTES + 1), 65_536))
    await yield_to_loop(20)
    assert wire.sent.startswith(b"HTTP/1.1 431 ")


TOO_LONG = b"a" * 1_200_000


@pytest.mark.parametrize("piece", [16_384, 65_536, 250_000, 10_000_000])
@pytest.mark.parametrize(
    "head",
    [
        pytest.param(START + b"X: " + TOO_LONG + b"\r\n\r\n", id="a header"),
        pytest.param(b"GET /" + TOO_LONG + b" HTTP/1.1\r\nHost: x\r\n\r\n", id="a path"),
        pytest.param(START + TOO_LONG + b": a\r\n\r\n", id="a name"),
        pytest.param(START + (b"X: " + b"a" * 7_000 + b"\r\n") * 171 + b"\r\n", id="headers"),
    ],
)
async def test_complete_head_that_is_too_long_is_refused(recording_server, head, piece):
    wire = recording_server.wire()
    wire.receive(*split(head, piece))
    await yield_to_loop(20)
    assert wire.sent.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert not recording_server.requests
    assert recording_server.server.head_bytes == 0


async def test_head_that_begins_behind_body_is_refused_if_it_is_too_long(recording_server):
    wire = recording_server.wire()
    first = CHUNKED.replace(b"Transfer-Encoding: chunked", b"Content-Length: 2")
    wire.receive(first, b"{}" + START + b"X: " + TOO_LONG[:250_000])
    await yield_to_loop(20)
    wire.receive(*split(TOO_LONG[250_000:] + b"\r\n\r\n", 250_000))
    await yield_to_loop(20)
    assert b"HTTP/1.1 431 Request Header Fields Too Large\r\n" in wire.sent
    assert len(recording_server.requests) == 1


async def test_malformed_request_gets_400_at_once(recording_server):
    for garbage in (b"\x16\x03\x01\x02", b"G@T / HTTP/1.1\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"):
        wire = recording_server.wire()
        wire.receive(garbage)
        await yield_to_loop(20)
        assert wire.sent.startswith(b"HTTP/1.1 400 Bad Request\r\n"), garbage
        assert wire.sent.endswith(b"\r\n\r\n400 Bad Request"), "nothing is echoed"


@pytest.mark.thorough
async def test_total_size_of_unfinished_heads_is_bounded(recording_server):
    part = START + b"X: " + b"a" * 1_000_000
    begun = [recording_server.wire() for _ in range(ALL_HEADS_BYTES // len(part) + 2)]
    for wire in begun:
        wire.receive(part)
    assert recording_server.server.head_bytes <= ALL_HEADS_BYTES
    one_more, small = begun[-1], recording_server.wire()
    small.receive(START + b"X: " + b"a" * 5_000, b"\r\n\r\n")
    await yield_to_loop(20)
    assert one_more.sent.startswith(b"HTTP/1.1 431 ")
    assert small.sent.startswith(b"HTTP/1.1 200 ")
    for wire in begun:
        wire.close()
    await yield_to_loop(20)
    assert recording_server.server.head_bytes == 0


@pytest.mark.timed
async def test_head_in_small_pieces_takes_linear_time(recording_server):
    def seconds(count):
        wire = recording_server.wire()
        pieces = [START + b"X: ", *[b"a"] * count]
        begun = time.thread_time()
        wire.receive(*pieces)
        return time.thread_time() - begun

    once, twice = (min(seconds(count) for _ in range(3)) for count in (100_000, 400_000))
    assert twice < 4 * 2.5 * once


async def test_unfinished_head_times_out(recording_server):
    silent, begun = recording_server.wire(), recording_server.wire()
    begun.receive(START)
    recording_server.clock.advance(HEAD_SECONDS - SWEEP_SECONDS)
    assert [silent.is_closed, begun.is_closed] == [False, False]
    begun.receive(b"X: a\r\n")
    recording_server.clock.advance(2 * SWEEP_SECONDS)
    assert silent.is_closed
    assert begun.is_closed


async def test_next_unfinished_head_on_connection_times_out(recording_server):
    wire = recording_server.wire()
    wire.receive(GET)
    await yield_to_loop(20)
    recording_server.clock.advance(2 * HEAD_SECONDS)
    assert not wire.is_closed, "it owes nothing"
    wire.receive(START)
    recording_server.clock.advance(HEAD_SECONDS + SWEEP_SECONDS)
    assert wire.is_closed


async def test_connection_being_served_has_no_head_timeout(recording_server):
    recording_server.going.clear()
    wire = recording_server.wire()
    wire.receive(GET)
    await yield_to_loop(20)
    recording_server.clock.advance(10 * HEAD_SECONDS)
    assert not wire.is_closed
    recording_server.going.set()


async def test_one_request_is_parsed_ahead_and_reading_pauses(recording_server):
    recording_server.going.clear()
    wire = recording_server.wire()
    wire.receive(GET)
    await yield_to_loop(20)
    wire.receive(GET)
    assert wire.is_reading
    wire.receive(GET * 100)
    assert not wire.is_reading
    recording_server.going.set()
    await yield_to_loop(1000)
    assert len(recording_server.requests) == 102
    assert wire.is_reading


async def test_long_pipelined_heads_are_not_parsed_early(recording_server):
    recording_server.going.clear()
    wire = recording_server.wire()
    long = START + b"X: " + b"a" * 900_000 + b"\r\n\r\n"
    wire.receive(GET)
    await yield_to_loop(20)
    wire.receive(long)
    wire.receive(*split(long, 200_000))
    assert recording_server.server.head_bytes == 0
    recording_server.going.set()
    await yield_to_loop(100)
    assert len(recording_server.requests) == 3


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(b"2;" + b"a" * 1000, id="a chunk's extension"),
        pytest.param(b"2\r\n{}\r\n0\r\n" + b"X: a\r\n" * 100, id="trailers"),
        pytest.param(b"2\r\n{}\r\n0\r\nX: " + b"a" * 1000, id="a trailer"),
    ],
)
async def test_body_that_is_mostly_framing_is_refused(recording_server, flood, caplog):
    wire = recording_server.wire()
    wire.receive(CHUNKED, flood)
    rest = b"X: a\r\n" * 10 if flood.endswith(b"\r\n") else b"a" * 60
    for _ in range(2 * NO_DATA // len(rest)):
        wire.receive(rest)
    await yield_to_loop(20)
    assert isinstance(recording_server.bodies[0], BadRequest)
    assert recording_server.server.head_bytes == 0
    await yield_to_loop(100)
    assert wire.is_closed
    assert not caplog.records, "any client could fill the log"


async def test_body_in_one_byte_chunks_is_accepted(recording_server):
    wire = recording_server.wire()
    wire.receive(CHUNKED)
    for _ in range(500):
        wire.receive(b"1\r\na\r\n" * 200)
        await yield_to_loop()
    wire.receive(b"0\r\n\r\n")
    await yield_to_loop(20)
    assert recording_server.bodies == [b"a" * 100_000]


async def test_unauthenticated_connections_evict_only_each_other(recording_server):
    recording_server.server.unauthenticated.maximum = 3
    authenticated, served = recording_server.wire(), recording_server.wire()
    authenticated.receive(GET.replace(b"/ ", b"/authenticated "))
    await yield_to_loop(20)
    recording_server.going.clear()
    served.receive(GET)
    await yield_to_loop(20)
    idle = [recording_server.wire() for _ in range(5)]
    await yield_to_loop(20)
    assert [wire.is_closed for wire in idle] == [True, True, False, False, False]
    assert [authenticated.is_closed, served.is_closed] == [False, False]
    recording_server.going.set()
