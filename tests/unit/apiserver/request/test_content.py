"""Conditional and range requests for documents, as in Go's file server."""

from datetime import UTC, datetime

import pytest

from mockube.apiserver.request.content import Content, serve_content
from tests.support.server.handler_requests import request_of

CONTENT = Content(
    body=b"0123456789",
    content_type="text/plain",
    modified=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    etag='"A"',
)
MODIFIED = "Fri, 02 Jan 2026 03:04:05 GMT"


@pytest.mark.parametrize(
    ("headers", "status", "body", "content_range"),
    [
        ({}, 200, b"0123456789", None),
        ({"If-None-Match": '"A"'}, 304, b"", None),
        ({"If-None-Match": 'W/"A"'}, 304, b"", None),
        ({"If-None-Match": "*"}, 304, b"", None),
        ({"If-None-Match": '"B", "A"'}, 304, b"", None),
        ({"If-None-Match": '"B"', "If-Modified-Since": MODIFIED}, 200, b"0123456789", None),
        ({"If-Modified-Since": MODIFIED}, 304, b"", None),
        ({"If-Modified-Since": "Fri, 02 Jan 2026 03:04:04 GMT"}, 200, b"0123456789", None),
        ({"If-Modified-Since": "once"}, 200, b"0123456789", None),
        ({"If-Unmodified-Since": "Fri, 02 Jan 2026 03:04:04 GMT"}, 412, b"", None),
        ({"If-Match": '"B"'}, 412, b"", None),
        ({"If-Match": '"A"'}, 200, b"0123456789", None),
        ({"Range": "bytes=2-4"}, 206, b"234", "bytes 2-4/10"),
        ({"Range": "bytes=-3"}, 206, b"789", "bytes 7-9/10"),
        ({"Range": "bytes=8-99"}, 206, b"89", "bytes 8-9/10"),
        ({"Range": "bytes=5-"}, 206, b"56789", "bytes 5-9/10"),
        ({"Range": "bytes=10-"}, 416, b"invalid range: failed to overlap\n", "bytes */10"),
        ({"Range": "bytes=4-2"}, 416, b"invalid range\n", None),
        ({"Range": "lines=1-2"}, 416, b"invalid range\n", None),
        ({"Range": "bytes=0-1", "If-Range": '"A"'}, 206, b"01", "bytes 0-1/10"),
        ({"Range": "bytes=0-1", "If-Range": '"B"'}, 200, b"0123456789", None),
        ({"Range": "bytes=0-1", "If-Range": MODIFIED}, 206, b"01", "bytes 0-1/10"),
    ],
)
def test_content_is_served_by_conditional_and_range_headers(headers, status, body, content_range):
    request = request_of("GET", "/", **{name.replace("-", "_"): value for name, value in headers.items()})
    answer = serve_content(request, CONTENT)
    assert (answer.status, answer.body) == (status, body)
    assert answer.headers.get("Content-Range") == content_range


def test_content_has_last_modified_etag_and_accept_ranges():
    headers = serve_content(request_of("GET", "/"), CONTENT).headers
    assert headers | {"Last-Modified": MODIFIED, "Etag": '"A"', "Accept-Ranges": "bytes"} == headers
