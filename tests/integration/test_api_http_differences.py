"""Unusual requests: docs/fidelity/server.md lists those to which kube-apiserver responds differently, because Go's parser differs."""

import asyncio

from tests.support.server import apiserver

HOST = b"Host: localhost\r\n"
END = b"Authorization: Bearer admin\r\nConnection: close\r\n\r\n"
GET = b"GET /version HTTP/1.1\r\n" + HOST
POST = b"POST /api/v1/namespaces HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
ONE_CHUNK = b"Transfer-Encoding: chunked\r\n" + END + b"0\r\n\r\n"
MALFORMED = GET + b"Authorization: Bearer admin\r\n\r\nGET /x HTTP/9\r\n\r\n"


async def get_status(client, data):
    host, port = client.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    _, status, *_ = (await reader.readline()).split()
    writer.transport.abort()
    return int(status)


CASES = {
    "two spaces": (b"GET  /version HTTP/1.1\r\n" + HOST + END, 400),
    "an empty line first": (b"\r\n" + GET + END, 200),
    "an asterisk": (b"GET * HTTP/1.1\r\n" + HOST + END, 400),
    "an asterisk, another method": (b"FOO * HTTP/1.1\r\n" + HOST + END, 400),
    "OPTIONS of all": (b"OPTIONS * HTTP/1.1\r\n" + HOST + END, 404),
    "a URL without a path": (b"GET http://localhost HTTP/1.1\r\n" + HOST + END, 200),
    "a fragment": (b"GET /version#x HTTP/1.1\r\n" + HOST + END, 400),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "LF only": (b"GET /version HTTP/1.1\nHost: localhost\nConnection: close\n\n", 400),
    "a folded header": (GET + b"X: a\r\n b\r\n" + END, 400),
    "HTTP/1.5": (b"GET /version HTTP/1.5\r\n" + HOST + END, 505),
    "HTTP/1.0 and a coding": (b"GET /version HTTP/1.0\r\nTransfer-Encoding: gzip\r\n" + END, 400),
    "HTTP/1.0 and chunks": (b"GET /version HTTP/1.0\r\n" + ONE_CHUNK, 400),
    "a length and chunks": (GET + b"Content-Length: 3\r\n" + ONE_CHUNK, 400),
    "the same length twice": (GET + b"Content-Length: 0\r\n" * 2 + END, 400),
    "a path that is not ASCII": (b"GET /api/v1/\xc3\xa9 HTTP/1.1\r\n" + HOST + END, 404),
    "another method": (b"FOO /version HTTP/1.1\r\n" + HOST + END, 405),
    "CONNECT without Host": (b"CONNECT example.org:80 HTTP/1.1\r\n\r\n", 400),
    "two slashes": (b"GET // HTTP/1.1\r\n" + HOST + END, 200),
    "a slash at the end": (b"GET /api/v1/nodes/ HTTP/1.1\r\n" + HOST + END, 200),
    "a chunk without a length": (POST + ONE_CHUNK[:-5] + b"zz\r\n", 400),
    "malformed bytes in the same packet": (MALFORMED, 200),
    "HEAD of a watch": (b"HEAD /api/v1/nodes?watch=1 HTTP/1.1\r\n" + HOST + END, 405),
    "DELETE of metrics": (b"DELETE /metrics HTTP/1.1\r\n" + HOST + END, 200),
}
"""By name, a request and the status of its response."""


async def test_unusual_requests_get_statuses_of_fidelity_page():
    """One test, because one server serves all."""
    async with apiserver.running() as client:
        found = {name: await get_status(client, data) for name, (data, _) in CASES.items()}
    assert found == {name: status for name, (_, status) in CASES.items()}
