"""Which response a client gets for what a backend sends, valid or not."""

from urllib.parse import urlsplit

import orjson
import pytest

from mockube.apimachinery.status import ApiError
from mockube.apiserver.http.backend_connection import KubeletClient
from mockube.apiserver.http.proxy import ReverseProxy
from mockube.apiserver.http.server import Server
from mockube.apiserver.registry.subresources.locations import Location
from mockube.apiserver.request.error_responses import error_response
from mockube.component_base.clock import RealClock, SteppedClock
from tests.support.event_loop import until
from tests.support.server.fake_transport import FakeTransport
from tests.support.server.raw_server import serving

GET = b"GET /proxy/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
BODY = b"Content-Length: 2\r\n\r\nok"


async def proxied(received):
    """Return the status line, the headers and the body that a client gets when a backend sends some bytes."""

    async def talk(writer):
        writer.write(received)
        writer.close()

    async with serving(talk) as backend:
        url = urlsplit(backend.url)
        location = Location(scheme="http", host=url.hostname, port=str(url.port), path="/")
        proxy = ReverseProxy(KubeletClient(), RealClock())

        async def handle(request):
            try:
                return await proxy.forward(request, location, upgrade_required=False)
            except ApiError as error:
                return error_response(error, request)

        server = Server(handle, clock=SteppedClock())
        wire = FakeTransport(server())
        wire.receive(GET)
        await until(lambda: wire.is_closed)
        await server.shutdown(0.01)
    head, _, body = bytes(wire.sent).partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    return status, headers, body


async def test_repeated_headers_are_forwarded_in_their_order():
    sent = [b"X-A: 1", b"Set-Cookie: a=1; Path=/", b"x-a: 2", b"Set-Cookie: b=2"]
    status, headers, body = await proxied(b"HTTP/1.1 200 OK\r\n" + b"\r\n".join(sent) + b"\r\n" + BODY)
    assert (status, body) == (b"HTTP/1.1 200 OK", b"ok")
    assert [line for line in headers if line in sent] == sent


async def test_bytes_of_headers_are_forwarded_as_they_were_sent():
    sent = [b"X-A: a\xffb", "X-B: \u00e4".encode()]
    _, headers, body = await proxied(b"HTTP/1.1 200 OK\r\n" + b"\r\n".join(sent) + b"\r\n" + BODY)
    assert ([line for line in headers if line in sent], body) == (sent, b"ok")


@pytest.mark.parametrize(
    ("framing", "lengths"),
    [
        pytest.param(
            b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", [b"Content-Length: 2"], id="repeated"
        ),
        pytest.param(b"Content-Length: 2, 2\r\n\r\nok", [b"Content-Length: 2"], id="list"),
        pytest.param(
            b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", [], id="chunks"
        ),
    ],
)
async def test_length_of_a_body_is_forwarded_once(framing, lengths):
    status, headers, body = await proxied(b"HTTP/1.1 200 OK\r\n" + framing)
    assert status == b"HTTP/1.1 200 OK"
    assert [line for line in headers if line.lower().startswith(b"content-length")] == lengths
    assert b"ok" in body


@pytest.mark.parametrize("header", [b"X: a\x01b", b"X: \x7f", b"X: \x1b[0m", b"X: a\r\n \x08b"])
async def test_header_with_control_character_is_a_malformed_response(header):
    status, _, body = await proxied(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n" + BODY)
    assert status == b"HTTP/1.1 503 Service Unavailable"
    problem = "error trying to reach service: the response header contains a control character"
    assert orjson.loads(body)["message"] == problem


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        pytest.param(
            b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n",
            'backend tried to switch protocol "websocket" when "" was requested',
            id="protocol",
        ),
        pytest.param(
            b"Connection: Upgrade\r\nUpgrade: caf\xc3\xa9\r\n",
            'backend tried to switch to invalid protocol "café"',
            id="invalid protocol",
        ),
        pytest.param(
            b"Upgrade: websocket\r\n",
            "internal error: 101 switching protocols response with non-writable body",
            id="no upgrade",
        ),
    ],
)
async def test_switch_of_protocols_that_was_not_requested_is_an_error(headers, message):
    status, _, body = await proxied(b"HTTP/1.1 101 Switching Protocols\r\n" + headers + b"\r\nraw bytes")
    assert status == b"HTTP/1.1 500 Internal Server Error"
    assert orjson.loads(body)["message"] == message


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param(b"Content-Type: text/html; charset=utf-8\r\n", b'<a href="/proxy/x">', id="page"),
        pytest.param(b"Content-Type: text/plain\r\n", b"<a href=/x>", id="text"),
        pytest.param(b"Content-Type: text/html\r\nLocation: /y\r\n", b"<a href=/x>", id="redirect"),
        pytest.param(b"Content-Type: text/html\r\nContent-Encoding: br\r\n", b"<a href=/x>", id="unknown"),
    ],
)
async def test_links_are_rewritten_in_pages_only(headers, body):
    page = b"Content-Length: 11\r\n\r\n<a href=/x>"
    status, _, received = await proxied(b"HTTP/1.1 200 OK\r\n" + headers + page)
    assert (status, body in received) == (b"HTTP/1.1 200 OK", True)


@pytest.mark.parametrize(
    ("url", "expected"),
    [("/y/?q#f", "/proxy/y/?q#f"), ("http://x/y", "http://x/proxy/y"), ("/proxy/y", "/proxy/y"), ("y", "y")],
)
async def test_location_leads_through_the_proxy(url, expected):
    _, headers, _ = await proxied(f"HTTP/1.1 302 Found\r\nLocation: {url}\r\n".encode() + BODY)
    assert f"Location: {expected}".encode() in headers
