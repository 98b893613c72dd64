"""TLS over a stream that has no socket."""

import asyncio
import ssl

import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.component_base.clock import RealClock
from mockube.component_base.serving_certificates import self_signed_tls_context
from mockube.component_base.tls_stream import TlsStream
from mockube.container_runtime.streams import InputStream


class Pipe:
    def __init__(self, received, sent):
        self.received, self.sent = received, sent

    async def read(self, limit):
        return await self.received.read(limit)

    async def write(self, data):
        await self.sent.feed(data)


@pytest.fixture
def streams():
    one, other = InputStream(), InputStream()
    return Pipe(one, other), Pipe(other, one)


@pytest.fixture(scope="module")
def server_context():
    return self_signed_tls_context("127.0.0.1", now=RealClock().now(), random=SystemRandom())


@pytest.fixture
def client_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_bytes_arrive_in_both_directions(streams, server_context, client_context):
    server = TlsStream(streams[0], server_context, is_server=True)
    client = TlsStream(streams[1], client_context, is_server=False, host="a.example")
    await asyncio.gather(server.handshake(), client.handshake())
    sent = bytes(range(256)) * 2000

    async def receive():
        received = b""
        while data := await server.read(1 << 14):
            received += data
        return received

    async def send():
        await client.write(sent)
        await client.end()

    received, _ = await asyncio.gather(receive(), send())
    assert received == sent
    await server.write(b"reply")
    assert await client.read(100) == b"reply"


async def test_handshake_with_what_is_no_tls_fails(streams, server_context):
    await streams[1].write(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        await TlsStream(streams[0], server_context, is_server=True).handshake()


async def test_handshake_fails_if_client_leaves(streams, server_context):
    await streams[0].received.end()
    with pytest.raises(ssl.SSLError):
        await TlsStream(streams[0], server_context, is_server=True).handshake()
