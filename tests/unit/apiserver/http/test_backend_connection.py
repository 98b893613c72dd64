"""The API server connects to pods by the gateway of the simulated kubelets, which says what their network does."""

import asyncio

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.http.backend_connection import Dialer, DialFailed, KubeletClient
from mockube.apiserver.registry.subresources.locations import KubeletGateway, Location
from mockube.component_base.clock import RealClock, SteppedClock
from mockube.component_base.serving_certificates import self_signed_certificate, tls_context_of_pair
from tests.support.event_loop import yield_to_loop


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ("502 Bad Gateway", "dial tcp 10.244.1.2:80: connect: connection refused"),
        ("504 Gateway Timeout", "dial tcp 10.244.1.2:80: i/o timeout"),
        ("404 Not Found", "dial tcp 10.244.1.2:80: the kubelet returned 404 Not Found"),
    ],
)
async def test_answer_of_the_gateway_is_the_problem_of_the_dial(status, problem):
    pair = self_signed_certificate("127.0.0.1", now=RealClock().now(), random=SeededRandom())

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls_context_of_pair(*pair))
    gateway = KubeletGateway(
        host="127.0.0.1",
        port=server.sockets[0].getsockname()[1],
        certificate=pair[0].decode(),
        node="node-1",
    )
    location = Location(scheme="http", host="10.244.1.2", port="80", gateway=gateway)
    clock = SteppedClock(RealClock().now())
    async with server:
        dialing = asyncio.create_task(_dial(Dialer(KubeletClient(), clock), location))
        while not dialing.done():
            clock.advance(1)
            await yield_to_loop()
        assert dialing.result() == problem


async def _dial(dialer, location):
    try:
        async with dialer.dial(location):
            return "connected"
    except DialFailed as error:
        return str(error)
