"""Messages of HTTP/1.1 that are written: nothing in a header can become another one."""

import pytest

from mockube.component_base.http1.reading import RequestReader, ResponseReader
from mockube.component_base.http1.writing import (
    LAST_CHUNK,
    InvalidHead,
    encode_chunk,
    encode_request,
    encode_response,
)


def test_request_is_encoded():
    encoded = encode_request("POST", "/a", [("Host", "x"), ("Content-Length", "2")], b"{}")
    assert encoded == b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    reader = RequestReader()
    reader.receive(encoded)
    assert reader.next_event().method == "POST"


def test_response_is_encoded():
    assert encode_response(404, [("X", "\udcff")]) == b"HTTP/1.1 404 Not Found\r\nX: \xff\r\n\r\n"


def test_chunks_are_read_again():
    reader = ResponseReader()
    head = encode_response(200, [("Transfer-Encoding", "chunked")])
    reader.receive(head + encode_chunk(b"a" * 26) + encode_chunk(memoryview(b"b")) + LAST_CHUNK)
    reader.next_event()
    assert [reader.next_event(), reader.next_event()] == [b"a" * 26, b"b"]
    reader.next_event()
    assert reader.is_reusable


@pytest.mark.parametrize("value", ["a\r\nB: c", "a\nb", "a\rb", "a\0b"])
def test_line_break_in_header_is_refused(value):
    with pytest.raises(InvalidHead, match='the header "X" contains a line break') as caught:
        encode_request("GET", "/", [("Host", "x"), ("X", value)])
    assert caught.value.go_text == 'net/http: invalid header field value for "X"'


def test_line_break_in_target_is_refused():
    with pytest.raises(InvalidHead, match="invalid line"):
        encode_request("GET", "/ HTTP/1.1\r\nX:", [])
