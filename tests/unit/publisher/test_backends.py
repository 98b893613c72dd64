"""Connections of a proxy to a pod inside of this process, with and without TLS."""

import asyncio
import ssl

import pytest

from mockube.component_base.tls_stream import TlsStream
from mockube.container_runtime.streams import StreamsClosed
from mockube.publisher import backends
from mockube.publisher.backends import PodConnection, TlsPodConnection, connect_to_pod
from mockube.publisher.certificates import certificate_of
from tests.support.event_loop import yield_to_loop
from tests.unit.publisher.test_gateways import pair, secret

__all__ = ["pair"]


class Pod:
    """A program in a pod that answers each piece in capitals, until its client ends."""

    def __init__(self):
        self.has_ended = False

    async def connect(self, side):
        self.side = side
        try:
            while data := await side.read(99):
                await side.write(data.upper())
        finally:
            self.has_ended = True


async def test_bytes_go_in_both_directions_until_the_proxy_ends():
    pod = Pod()
    connection = await connect_to_pod(pod.connect, uses_tls=False, host="web")
    assert isinstance(connection, PodConnection)
    await connection.write(b"hello")
    assert await connection.read(99) == b"HELLO"
    await connection.end()
    assert await connection.read(99) == b""
    assert pod.has_ended


async def test_program_that_ends_ends_what_the_proxy_reads_and_takes_nothing_more():
    async def connect(side):
        assert await side.end()

    connection = PodConnection(connect)
    assert await connection.read(9) == b""
    for _ in range(9):
        await connection.write(b"x" * (1 << 20))


async def test_closed_connection_ends_the_program():
    pod = Pod()
    connection = PodConnection(pod.connect)
    await connection.write(b"x")
    await yield_to_loop(3)
    await connection.close()
    assert (pod.has_ended, pod.side.departure.is_set()) == (True, True)
    with pytest.raises(StreamsClosed):
        await pod.side.write(b"late")


async def test_closed_connection_ends_a_read_that_waits():
    connection = PodConnection(Pod().connect)
    reading = asyncio.create_task(connection.read(9))
    await yield_to_loop(3)
    await connection.close()
    assert await reading == b""


async def test_program_whose_client_leaves_is_no_error():
    async def connect(_):
        raise StreamsClosed

    assert await PodConnection(connect).read(9) == b""


def over_tls(pair, serve):
    """Return a program that speaks TLS, with the certificate of a Secret."""
    context = certificate_of(secret(pair)).context

    async def connect(side):
        stream = TlsStream(side, context, is_server=True)
        await stream.handshake()
        await serve(stream)

    return connect


async def test_backend_over_tls_needs_no_known_certificate(pair):
    pod = Pod()
    connection = await connect_to_pod(over_tls(pair, pod.connect), uses_tls=True, host="other.example")
    assert isinstance(connection, TlsPodConnection)
    await connection.write(b"hello")
    assert await connection.read(99) == b"HELLO"
    await connection.end()
    assert await connection.read(99) == b""
    await connection.close()
    assert pod.has_ended


async def test_close_ends_a_backend_over_tls(pair):
    pod = Pod()
    connection = await connect_to_pod(over_tls(pair, pod.connect), uses_tls=True, host="web")
    await connection.write(b"x")
    assert await connection.read(9) == b"X"
    await connection.close()
    assert pod.has_ended


async def test_backend_that_speaks_no_tls_is_a_bad_gateway():
    closed = asyncio.Event()

    async def connect(side):
        await side.read(9)
        await side.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()

    assert await connect_to_pod(connect, uses_tls=True, host="web") == 502
    assert closed.is_set()


def test_tls_of_backends_is_made_once():
    assert backends._unverified() is backends._unverified()
    assert backends._unverified().verify_mode == ssl.CERT_NONE
