"""A connection reads the same requests from any pieces of their bytes."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.http.server import Server
from mockube.apiserver.request.response import text_response
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop
from tests.support.server.fake_transport import FakeTransport

HOST = b"Host: x\r\n"
ENDS = [
    b"\r\n",
    b"X: FOO / HTTP/1.1\r\n\r\n",
    b"Content-Length: 6\r\n\r\n{}{}{}",
    b"Content-Length: 6\r\n\r\nT / HT",
    b"Content-Length: 6\r\n\r\n\n\r\n\r\n\r",
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nGE \r\n0\r\n\r\n",
]
UNUSUAL = [b"FOO", b"get", b"G", b"CONNECT"]
"""Methods that the parser knows in the first request of a connection only."""


def request(method):
    return st.tuples(method, st.sampled_from(ENDS))


REQUESTS = st.tuples(
    request(st.sampled_from([b"GET", *UNUSUAL])),
    st.lists(request(st.sampled_from([b"GET", b"POST", b"DELETE"])), max_size=4),
).map(lambda parts: [parts[0], *parts[1]])


async def methods_read(data, pieces):
    """Return the methods of the requests that a connection reads from pieces, each followed by some turns of the loop."""
    methods = []

    async def handle(request):
        methods.append(request.method.encode())
        return text_response("done")

    server = Server(handle, clock=SteppedClock())
    wire, position = FakeTransport(server()), 0
    for size, count in pieces:
        wire.receive(data[position : position + size])
        position += size
        await yield_to_loop(count)
    wire.receive(data[position:])
    await yield_to_loop(200)
    await server.shutdown(0.01)
    return methods


@given(REQUESTS, st.lists(st.tuples(st.integers(1, 40), st.integers(0, 20)), max_size=30))
def test_requests_are_the_same_in_any_pieces(requests, pieces):
    data = b"".join(method + b" / HTTP/1.1\r\n" + HOST + end for method, end in requests)
    assert asyncio.run(methods_read(data, pieces)) == [method for method, _ in requests]
