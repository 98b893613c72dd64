"""Requests that are refused before authentication: responses of a real kube-apiserver 1.36, byte by byte."""

import asyncio

import pytest

from tests.support.server import apiserver

HOST = b"Host: localhost"
TEXT = b"text/plain; charset=utf-8"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def send_bytes(client, data):
    """Return the status line, the headers and the body of one response."""
    host, port = client.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[:-2]
    headers = dict(line.lower().split(b": ", 1) for line in lines)
    body = await reader.readexactly(int(headers[b"content-length"]))
    writer.transport.abort()
    return first.decode(), headers, body.decode()


def request_bytes(line, *headers, body=b""):
    lines = [line, *headers, b"Authorization: Bearer admin", b"Connection: close"]
    return b"\r\n".join([*lines, b"", body])


GET = b"GET /version HTTP/1.1"
POST = b"POST /version HTTP/1.1"
LAST_CHUNK = b"0\r\n\r\n"
BAD = "400 Bad Request"
NO_VERSION = "505 HTTP Version Not Supported: unsupported protocol version"
MALFORMED = f"{BAD}: malformed Host header"


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        pytest.param(b"no\r\n\r\n", BAD, id="one word"),
        pytest.param(b"GET /version\r\n\r\n", BAD, id="the request of HTTP/0.9"),
        pytest.param(b"GET /version x HTTP/1.1\r\n\r\n", BAD, id="four words"),
        pytest.param(b"GET\t/version\tHTTP/1.1\r\n\r\n", BAD, id="tabs"),
        pytest.param(request_bytes(b"G(T /version HTTP/1.1", HOST), BAD, id="no method"),
        pytest.param(request_bytes(b"GET version HTTP/1.1", HOST), BAD, id="no path"),
        pytest.param(request_bytes(b"GET /version http/1.1", HOST), BAD, id="lower-case protocol"),
        pytest.param(request_bytes(b"GET /version HTTP/1.10", HOST), BAD, id="version of two digits"),
        pytest.param(request_bytes(b"GET /version HTTP/0.9", HOST), NO_VERSION, id="0.9"),
        pytest.param(request_bytes(b"GET /version HTTP/2.0", HOST), NO_VERSION, id="2.0"),
        pytest.param(request_bytes(b"GET /version HTTP/3.0", HOST), NO_VERSION, id="3.0"),
        pytest.param(request_bytes(b"GET /version%zz HTTP/1.1", HOST), BAD, id="a wrong escape"),
        pytest.param(request_bytes(b"GET /version% HTTP/1.1", HOST), BAD, id="an escape that ends"),
        pytest.param(request_bytes(b"GET /ver\0sion HTTP/1.1", HOST), BAD, id="a path with NUL"),
        pytest.param(request_bytes(b"GET /ver\x7fsion HTTP/1.1", HOST), BAD, id="a path with DEL"),
        pytest.param(request_bytes(GET), f"{BAD}: missing required Host header", id="no host"),
        pytest.param(request_bytes(GET, HOST, HOST), BAD, id="two hosts"),
        pytest.param(request_bytes(GET, b"Host: a/b"), MALFORMED, id="a host with a path"),
        pytest.param(request_bytes(GET, b"Host: a b"), MALFORMED, id="a host with a blank"),
        pytest.param(request_bytes(GET, b"Host: a@b"), MALFORMED, id="a host with a user"),
        pytest.param(request_bytes(GET, b"Host: \xc3\xa9"), MALFORMED, id="a host that is not ASCII"),
        pytest.param(request_bytes(GET, b"Host: " + b"/" * 1000), MALFORMED, id="a long host"),
        pytest.param(request_bytes(GET, HOST, b"X Y: a"), f"{BAD}: invalid header name", id="a name with a blank"),
        pytest.param(request_bytes(GET, HOST, b"X : a"), f"{BAD}: invalid header name", id="a blank before the colon"),
        pytest.param(request_bytes(GET, HOST, b"X(Y: a"), BAD, id="a name that is no token"),
        pytest.param(request_bytes(GET, HOST, b": a"), BAD, id="no name"),
        pytest.param(request_bytes(GET, HOST, b"nocolon"), BAD, id="no colon"),
        pytest.param(request_bytes(GET, b" X: a", HOST), BAD, id="an empty fold"),
        pytest.param(request_bytes(GET, HOST, b"X: a\0b"), BAD, id="a value with NUL"),
        pytest.param(request_bytes(GET, HOST, b"X: a\rb"), BAD, id="a value with CR"),
        pytest.param(request_bytes(GET, HOST, b"Content-Length: -1"), BAD, id="a negative length"),
        pytest.param(request_bytes(GET, HOST, b"Content-Length: +1", body=b"x"), BAD, id="a length with a sign"),
        pytest.param(request_bytes(GET, HOST, b"Content-Length: " + b"9" * 30), BAD, id="a huge length"),
        pytest.param(request_bytes(GET, HOST, b"Content-Length: 1", b"Content-Length: 2"), BAD, id="two lengths"),
    ],
)  # fmt: skip
async def test_invalid_http_is_refused_with_gos_message(client, data, refusal):
    first, headers, body = await send_bytes(client, data)
    assert (first, body) == (f"HTTP/1.1 {refusal}", refusal)
    assert (headers[b"content-type"], headers[b"connection"]) == (TEXT, b"close")


@pytest.mark.parametrize(
    "encoding", [b"gzip", b"gzip, chunked", b"identity", b"xchunked", b"", b"chunked, chunked"]
)
async def test_transfer_encoding_other_than_chunked_is_refused(client, encoding):
    data = request_bytes(POST, HOST, b"Transfer-Encoding: " + encoding, body=LAST_CHUNK)
    first, _, body = await send_bytes(client, data)
    assert (first, body) == ("HTTP/1.1 501 Not Implemented", "Unsupported transfer encoding")


async def test_repeated_transfer_encoding_is_refused(client):
    first, _, _ = await send_bytes(
        client, request_bytes(POST, HOST, *[b"Transfer-Encoding: chunked"] * 2, body=LAST_CHUNK)
    )
    assert first == "HTTP/1.1 501 Not Implemented"


async def test_http_1_0_request_needs_no_host(client):
    first, _, _ = await send_bytes(client, request_bytes(b"GET /version HTTP/1.0"))
    assert first == "HTTP/1.0 200 OK"


async def test_connect_method_opens_no_tunnel(client):
    data = request_bytes(b"CONNECT localhost:443 HTTP/1.1", HOST)
    first, _, _ = await send_bytes(client, data + request_bytes(GET, HOST))
    assert first == "HTTP/1.1 405 Method Not Allowed"


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (b"http://localhost/version", 200),
        (b"http://evil.example/version", 421),  # as with this Host, which a real server does not check
        (b"/%76ersion", 200),
        (b"/version/", 200),
        (b"//version", 404),
        (b"/./version", 404),
        (b"/api/../version", 404),
        (b"/%2e/version", 404),
        (b"/api%2fv1", 200),
        (b"/api/v1/namespaces/default/../kube-system", 404),
        (b"/version%00", 404),
        (b"/" + b"a" * 9_000, 404),
        (b"/version?%zz", 200),
        (b"/api/v1/namespaces?limit=1;x=y&limit=%zz", 200),
    ],
)
async def test_unusual_paths_and_queries_are_routed(client, target, code):
    first, _, _ = await send_bytes(client, request_bytes(b"GET %b HTTP/1.1" % target, HOST))
    assert first.split()[1] == str(code)


async def test_unknown_methods_and_resources_do_not_become_metric_labels(client):
    for number in range(20):
        await client.send("OPTIONS", f"/api/v1/namespaces/default/unknown{number}")
        await client.get(f"/apis/group{number}.example/v{number}/things{number}")
        await client.get(f"/page{number}")
        await client.send(f"UNKNOWN{number}", "/version")
    decoded = (await client.get("/metrics")).data.decode()
    lines = [line for line in decoded.splitlines() if line.startswith("apiserver_request_total{")]
    assert not [line for line in lines if "unknown" in line.lower() or "example" in line or "page" in line]
    assert len(lines) < 10
