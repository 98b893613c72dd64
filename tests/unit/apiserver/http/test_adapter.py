"""The request that a handler receives from a socket, and the bytes of its response."""

import pytest

from mockube.apiserver.http.server import Server
from mockube.apiserver.request.response import Response
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop
from tests.support.server.fake_transport import FakeTransport

GET = b"GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\nUser-Agent: \xff\r\n\r\n"


async def transport_after(handle, request=GET):
    """Return the transport after a request was handled."""
    server = Server(handle, clock=SteppedClock())
    wire = FakeTransport(server())
    wire.receive(request)
    await yield_to_loop(20)
    await server.shutdown(0.01)
    return wire


async def test_request_has_method_headers_and_body_as_sent():
    requests = []

    async def handle(request):
        requests.append(request)
        return Response(200, [await request.client.read(10)])

    post = GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n{}")
    wire = await transport_after(handle, post)
    (request,) = requests
    assert (request.method, request.path, request.query_string) == ("POST", "/a b", "c=d")
    assert (request.uri, request.source, request.user_agent) == ("/a%20b?c=d", "192.0.2.7", "\ufffd")
    assert (request.version, request.client.certificates) == ((1, 1), None)
    assert wire.sent.endswith(b"\r\n\r\n{}")


@pytest.mark.parametrize("query", [b"a=%2525", b"a=%25zz", b"a=b+c", b"a=%ff", b"a=%c3%a9%26"])
async def test_query_is_not_decoded(query):
    queries = []

    async def handle(request):
        queries.append(request.query_string)
        return Response(200)

    await transport_after(handle, GET.replace(b"c=d", query))
    assert queries == [query.decode()]


async def test_written_response_is_not_written_again():
    async def handle(request):
        response = Response(200, [b"once"])
        await request.client.write(response)
        return response

    assert (await transport_after(handle)).sent.count(b"once") == 1


async def test_stream_is_written_in_chunks_until_its_end():
    async def handle(request):
        response = Response(200, (), "text/x")
        sink = request.client.stream(response)
        await sink.begin()
        await sink.write([b"one ", b"part"])
        await sink.end()
        return response

    wire = await transport_after(handle)
    assert b"Content-Type: text/x\r\n" in wire.sent
    assert wire.sent.endswith(b"8\r\none part\r\n0\r\n\r\n")


async def test_truncated_stream_closes_connection():
    async def handle(request):
        sink = request.client.stream(Response(200))
        await sink.begin()
        await sink.write([b"some"])
        return Response(500)

    wire = await transport_after(handle)
    assert wire.is_closed
    assert not wire.sent.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (304, b"HTTP/1.1 304 Not Modified\r\nETag: e\r\nDate: "),
        (301, b"HTTP/1.1 301 Moved Permanently\r\nETag: e\r\nContent-Length: 0\r\n"),
        (200, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: e\r\nContent-Length: 0\r\n"),
    ],
)
async def test_response_without_body_has_no_content_type(code, expected):
    async def handle(_request):
        return Response(code, headers={"ETag": "e"})

    assert (await transport_after(handle)).sent.startswith(expected)
