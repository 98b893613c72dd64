"""Messages of HTTP/1.1 that are read: valid ones in any pieces, and hostile ones, which end with an error and need little memory."""

import contextlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.component_base.http1 import heads
from mockube.component_base.http1.heads import (
    BadStartLine,
    IncompleteMessage,
    MessageTooLong,
    ProtocolError,
    RequestHead,
    ResponseHead,
)
from mockube.component_base.http1.reading import (
    END,
    MAX_EXCESS_BYTES,
    MAX_HEAD_BYTES,
    MAX_LINE_BYTES,
    NEED_DATA,
    RequestReader,
    ResponseReader,
)
from mockube.component_base.http1.states import TRANSITIONS, State, Trigger

COUNTED = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-LENGTH: \t5 \r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;x=y\r\nhel\r\n00A \r\nlo\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
)
EMPTY = b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103\r\nLink: x\r\n\r\n" + COUNTED
NO_CONTENT = b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\n{}"
OLD = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"
FOLDED = b"HTTP/1.1 200 OK\r\nX: a\r\n\t b\r\nContent-Length: 5\r\n\r\nhello"
BARE = b"HTTP/1.1 200 OK\nX: a b\nContent-Length: 5\n\nhello"
TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\nto the end"


def events(reader, *pieces, ends=False):
    """Return all events; pieces of the body are joined."""
    found = []
    for piece in [*pieces, b""] if ends else pieces:
        reader.receive(piece)
        while (event := reader.next_event()) not in (NEED_DATA, END):
            if isinstance(event, bytes) and found and isinstance(found[-1], bytes):
                found[-1] += event
            else:
                found.append(event)
        if event is END:
            found.append(END)
            break
    return found


def read(*pieces, is_head=False):
    """Return the status, the body, and whether the connection is reusable; None without the end of a response."""
    reader = ResponseReader("HEAD" if is_head else "GET")
    try:
        found = events(reader, *pieces, ends=True)
    except IncompleteMessage:
        return None
    head = [event for event in found if isinstance(event, ResponseHead)][-1]
    body = b"".join(event for event in found if isinstance(event, bytes))
    return head, body, reader.is_reusable


@pytest.mark.parametrize(
    ("received", "status", "body", "is_reusable"),
    [
        pytest.param(COUNTED, 200, b"hello", True, id="counted"),
        pytest.param(CHUNKED, 201, b"hello\r\n world", True, id="chunked"),
        pytest.param(EMPTY, 200, b"", True, id="empty"),
        pytest.param(CONTINUED, 200, b"hello", True, id="after informational responses"),
        pytest.param(NO_CONTENT, 204, b"", True, id="without content"),
        pytest.param(LAST, 200, b"{}", False, id="last of the connection"),
        pytest.param(OLD, 200, b"{}", False, id="HTTP/1.0"),
        pytest.param(TO_THE_END, 200, b"to the end", False, id="to the end"),
        pytest.param(COUNTED + b"x", 200, b"hello", False, id="additional data"),
        pytest.param(CHUNKED + b"x", 201, b"hello\r\n world", False, id="additional data after chunks"),
    ],
)
def test_http_response_is_parsed(received, status, body, is_reusable):
    head, *rest = read(received)
    assert (head.status, *rest) == (status, body, is_reusable)


def test_response_to_head_has_no_body():
    head, *rest = read(COUNTED.removesuffix(b"hello"), is_head=True)
    assert rest == [b"", True]
    assert head.fields == {b"content-type": b"a/b", b"content-length": b"5"}


@given(st.sampled_from([COUNTED, CHUNKED, EMPTY, CONTINUED, NO_CONTENT, LAST, FOLDED, BARE]), st.data())
def test_response_is_parsed_from_any_chunks(received, data):
    cuts = data.draw(st.lists(st.integers(1, len(received) - 1), unique=True).map(sorted))
    pieces = [received[a:b] for a, b in zip([0, *cuts], [*cuts, len(received)], strict=True)]
    assert read(*pieces) == read(received)


@pytest.mark.parametrize("received", [b"", b"HTTP/1.1 200 OK\r\n", COUNTED[:-1], CHUNKED[:-2]])
def test_truncated_response_is_incomplete(received):
    assert read(received) is None


@pytest.mark.parametrize(
    ("received", "problem"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "begins with b'SSH"),
        (b"HTTP/2 200\r\n\r\n", "begins with"),
        (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "invalid response header b'nonsense'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "length of b'-1'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "encoded as b'gzip"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "size of b'-1'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "longer than its size"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * MAX_HEAD_BYTES, "response header is too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * (MAX_LINE_BYTES + 1), "too long"),
        (b"SSH-2.0-OpenSSH\r\n", "begins with b'SSH"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "begins with"),
        (b"\r\n\r\n", "begins with b''"),
        (b"HTTP/1.1 99 \r\n\r\n", "begins with"),
        (b"HTTP/1.1 200\0OK\r\n\r\n", "control character"),
        (b"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", "control character"),
        (b"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n", "control character"),
        (b"HTTP/1.1 200 OK\r\nA: b\x01c\r\n\r\n", "control character"),
        (b"HTTP/1.1 200 OK\r\nA: b\x7f\r\n\r\n", "control character"),
        (b"HTTP/1.1 200 OK\nA: b\x1b\n\n", "control character"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n \x08c\r\n\r\n", "control character"),
        (b"HTTP/1.1 200 OK\r\n: b\r\n\r\n", "invalid response header b': b'"),
        (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "invalid response header b'A : b'"),
        (b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "invalid response header b' A: b'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "length of b'5, 6'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 16 + b"\r\n\r\n", "length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", "length of b''"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "encoded as",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n", "size of b'5"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n", "size of b'0x5'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\n", "size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 ;x\r\nhello\r\n", "size of b'5 ;x'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 20_000, "trailers"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 3_000, "response header is too long"),
    ],
)
def test_malformed_response_is_refused(received, problem):
    reader = ResponseReader()
    with pytest.raises(ProtocolError, match=problem):
        events(reader, received)
    assert reader.state is State.FAILED
    with pytest.raises(ProtocolError, match="earlier part"):
        reader.next_event()


TRAILERS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"


@pytest.mark.parametrize(
    "trailers",
    [
        b"bad\x00\rline",
        b"nonsense",
        b"A : b",
        b": b",
        b"A: b\x01",
        b"A: b\x7f",
        b" A: b",
        b"A: b\nnonsense",
        b"A: b\n\nC: d",
    ],
)
def test_malformed_trailers_are_refused(trailers):
    with pytest.raises(ProtocolError, match="invalid response trailer"):
        events(ResponseReader(), TRAILERS + trailers + b"\r\n\r\n")


@pytest.mark.parametrize(
    "trailers", [b"A: b\r\nC:\td\xff", b"A: b\r\n continued\r\n\tagain", b"A: b\n c\nD: e", b"A:"]
)
def test_trailers_that_go_reads_are_accepted(trailers):
    assert read(TRAILERS + trailers + b"\r\n\r\n")[1:] == (b"x", True)


def test_size_of_a_chunk_has_up_to_16_digits():
    beginning = TRAILERS.partition(b"1\r\nx")[0]
    assert read(beginning + b"%016x\r\nhello\r\n0\r\n\r\n" % 5)[1] == b"hello"
    assert events(ResponseReader(), beginning + b"f" * 16 + b"\r\nhello")[1:] == [b"hello"]


def test_informational_responses_are_events():
    statuses = [e.status for e in events(ResponseReader(), CONTINUED) if isinstance(e, ResponseHead)]
    assert statuses == [100, 103, 200]


def test_data_behind_switch_of_protocols_are_not_read():
    reader = ResponseReader()
    head, end = events(reader, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\n\r\nSSH-2.0")
    assert (head.status, head.header("upgrade"), end) == (101, "tcp", END)
    assert reader.state is State.SWITCHED
    assert (reader.take_rest(), reader.take_rest()) == (b"SSH-2.0", b"")


def test_chunks_win_over_length_and_connection_is_not_reused():
    both = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1)
    _, body, is_reusable = read(both)
    assert (body, is_reusable) == (b"hello\r\n world", False)


def test_same_length_twice_is_one():
    _, body, is_reusable = read(COUNTED.replace(b"Content-Type: a/b", b"Content-Length: 5"))
    assert (body, is_reusable) == (b"hello", True)


def test_chunks_of_old_version_are_ignored():
    _, body, _ = read(CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert body.startswith(b"3;x=y\r\nhel")


def test_end_of_connection_tells_whether_message_has_begun():
    for received, has_begun in ((b"", False), (b"HTTP/1.1 2", True), (COUNTED[:-1], True)):
        with pytest.raises(IncompleteMessage) as caught:
            events(ResponseReader(), received, ends=True)
        assert caught.value.has_begun == has_begun


def test_first_of_repeated_headers_is_used():
    head, *_ = read(
        b"HTTP/1.1 204 No\r\nLocation: /a\r\nLOCATION: /b\r\nConnection: x\r\nConnection: close\r\n\r\n"
    )
    assert (head.header("location"), head.header("connection")) == ("/a", "x, close")


def test_pairs_are_headers_as_they_were_sent():
    head, *_ = read(b"HTTP/1.1 204 No\r\nSet-Cookie: a\r\nset-cookie:b \r\nX: \xff\r\n\tc\r\n\r\n")
    assert heads.pairs(head) == [("Set-Cookie", "a"), ("set-cookie", "b"), ("X", "\udcff c")]


@pytest.mark.parametrize("received", [FOLDED, BARE], ids=["folded", "bare line feeds"])
def test_lines_of_go_are_accepted(received):
    head, body, _ = read(received)
    assert (head.header("x"), body) == ("a b", b"hello")


def test_chunks_with_little_data_are_refused():
    chunk = b"1;%b\r\nx\r\n" % (b"e" * 1000)
    reader = ResponseReader()
    with pytest.raises(ProtocolError, match="too much besides their data"):
        events(reader, CHUNKED[: CHUNKED.index(b"3;x")], *[chunk] * (2 * MAX_EXCESS_BYTES // 1000))


def test_one_byte_chunks_are_accepted():
    received = CHUNKED[: CHUNKED.index(b"3;x")] + b"1\r\na\r\n" * 10_000 + b"0\r\n\r\n"
    assert read(received)[1] == b"a" * 10_000


@pytest.mark.parametrize(
    "beginning",
    [b"HTTP/1.1 200 OK\r\nX: ", CHUNKED[: -len(b"Trailer: x\r\n\r\n")] + b"X: "],
    ids=["head", "trailer"],
)
def test_endless_line_needs_bounded_memory(beginning):
    reader, piece = ResponseReader(), b"a" * 4096
    tracemalloc.start()
    try:
        with pytest.raises(MessageTooLong):
            events(reader, beginning, *[piece] * 100)
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_HEAD_BYTES
    finally:
        tracemalloc.stop()


@given(
    st.sampled_from([COUNTED, CHUNKED, CONTINUED, FOLDED, BARE]),
    st.lists(st.tuples(st.integers(0, 90), st.binary(max_size=4)), max_size=4),
    st.sampled_from([ResponseReader, RequestReader]),
)
def test_any_bytes_end_with_an_event_or_an_error(received, changes, kind):
    mutant = bytearray(received)
    for position, data in changes:
        mutant[position : position + len(data)] = data
    with contextlib.suppress(ProtocolError):
        events(kind(), bytes(mutant), ends=True)


REQUEST = b"POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED_REQUEST = b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def test_pipelined_requests_are_read_one_after_another():
    reader = RequestReader()
    reader.receive(REQUEST + CHUNKED_REQUEST + GET)
    found = []
    for _ in range(3):
        found += events(reader, ends=False) or [*iter(reader.next_event, END)]
        reader.expect_next()
    assert [(e.method, e.target) if isinstance(e, RequestHead) else e for e in found] == [
        *[("POST", "/a?b"), b"{}"],
        *[("PUT", "/"), b"{}"],
        ("GET", "/"),
    ]
    assert reader.next_event() is NEED_DATA


@pytest.mark.parametrize(
    "received",
    [b"GET /\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"G(T / HTTP/1.1\r\n\r\n", b"GET /a b HTTP/1.1\r\n\r\n"],
)
def test_malformed_request_line_is_refused(received):
    with pytest.raises(BadStartLine):
        events(RequestReader(), received)


def test_every_state_has_transitions_to_known_states():
    assert TRANSITIONS.keys() == {*State}
    reached = {state for table in TRANSITIONS.values() for state in table.values()}
    assert reached == {*State}
    assert {trigger for table in TRANSITIONS.values() for trigger in table} == {*Trigger}
