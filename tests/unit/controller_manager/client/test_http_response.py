"""HTTP/1.1 responses are parsed from any split of their bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.controller_manager.client.http_response import (
    MOST_HEAD,
    MOST_LINE,
    MalformedResponse,
    ResponseReader,
)

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
TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\nto the end"


def read(*pieces, is_head=False):
    """Return the response, which the last piece or else the end of the connection completes."""
    reader = ResponseReader(is_head=is_head)
    *before, last = [reader.feed(piece) for piece in pieces]
    assert before == [None] * len(before)
    return last or reader.end()


@pytest.mark.parametrize(
    ("said", "status", "body", "is_reusable"),
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
def test_http_response_is_parsed(said, status, body, is_reusable):
    response = read(said)
    assert (response.status, response.body, response.is_reusable) == (status, body, is_reusable)


def test_response_to_head_has_no_body():
    response = read(COUNTED.removesuffix(b"hello"), is_head=True)
    assert (response.body, response.is_reusable) == (b"", True)
    assert response.headers == {b"content-type": b"a/b", b"content-length": b"5"}


@given(st.sampled_from([COUNTED, CHUNKED, EMPTY, CONTINUED, NO_CONTENT, LAST]), st.data())
def test_response_is_parsed_from_any_chunks(said, data):
    cuts = data.draw(st.lists(st.integers(0, len(said) - 1), unique=True).map(sorted))
    pieces = [said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True)]
    assert read(*pieces) == read(said)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", COUNTED[:-1], CHUNKED[:-2]])
def test_truncated_response_is_incomplete(said):
    assert read(said) is None


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "begins with b'SSH"),
        (b"HTTP/2 200\r\n\r\n", "begins with"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "invalid response header b'nonsense'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "length of b'-1'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "encoded as b'gzip"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "size of b'-1'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "longer than its size"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * MOST_HEAD, "response header is too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * (MOST_LINE + 1), "too long"),
    ],
)
def test_malformed_response_is_refused(said, problem):
    with pytest.raises(MalformedResponse, match=problem):
        ResponseReader().feed(said)
