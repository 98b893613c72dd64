"""The check of a server's certificates is a part of the handshake: without it nothing is sent, read or connected."""

import asyncio
import ssl
from datetime import timedelta

import pytest
import uvloop

from mockube.apimachinery.x509.pool import pool_from_pem
from mockube.apimachinery.x509.tls import ServerVerifier, VerificationError, client_context
from mockube.component_base.clock import SteppedClock
from tests.support.chains import builder
from tests.support.chains.builder import key
from tests.support.chains.memory_connection import MemoryConnection
from tests.support.chains.served import pem, server_context
from tests.support.chains.shapes import HOST, leaf, root

TRUSTED = pem(root().der())
OTHER = pem(root(key=key("p256-other")).der())
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def client(roots=TRUSTED):
    return client_context(pool_from_pem(roots), lambda: builder.NOW)


@pytest.fixture(params=VERSIONS, ids=lambda version: version.name)
def server(request, tmp_path):
    context = server_context(tmp_path, [leaf().der()], key("p256-leaf"))
    context.maximum_version = request.param
    return context


def test_trusted_server_is_connected(server):
    connection = MemoryConnection(client(), server)
    connection.connect()
    connection.client.write(b"request")
    connection.send_to_server()
    assert connection.server.read() == b"request"


def test_unverified_connection_is_neither_read_nor_written(server):
    connection = MemoryConnection(client(), server)
    with pytest.raises(VerificationError):
        connection.client.write(b"request")
    with pytest.raises(VerificationError):
        connection.client.read()
    assert connection.to_server.read() == b""


def test_connection_without_host_name_is_refused(server):
    with pytest.raises(VerificationError, match="either ServerName or InsecureSkipVerify must be specified"):
        ServerVerifier(pool_from_pem(TRUSTED), lambda: builder.NOW).check([leaf().der()], "")


def test_sockets_are_not_wrapped():
    with pytest.raises(NotImplementedError):
        client().wrap_socket(None)


LOOPS = pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


async def open_stream(port, context):
    return await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=HOST)


@LOOPS
def test_stream_to_trusted_server_is_connected(server, new_loop):
    async def exchange():
        async def echo(reader, writer):
            writer.write(await reader.readexactly(7))
            writer.close()

        async with await asyncio.start_server(echo, "127.0.0.1", 0, ssl=server) as listener:
            reader, writer = await open_stream(listener.sockets[0].getsockname()[1], client())
            writer.write(b"request")
            answer = await reader.readexactly(7)
            writer.transport.abort()
            return answer

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(exchange()) == b"request"


@LOOPS
def test_untrusted_server_receives_nothing_after_its_certificate(server, new_loop, tmp_path):
    """Not even the client certificate that it requests."""
    server.load_verify_locations(cadata=TRUSTED.decode())
    server.verify_mode = ssl.CERT_REQUIRED
    context = client(OTHER)
    server_context(tmp_path, [leaf(usages=[]).der()], key("p256-leaf"))
    context.load_cert_chain(tmp_path / "chain.pem")

    async def connect():
        received = asyncio.get_running_loop().create_future()

        async def serve(reader, writer):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            connection = server.wrap_bio(incoming, outgoing, server_side=True)
            incoming.write(await reader.read(65536))
            with pytest.raises(ssl.SSLWantReadError):
                connection.do_handshake()
            writer.write(outgoing.read())
            received.set_result(await reader.read())
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
            with pytest.raises(VerificationError, match="x509: certificate signed by unknown authority"):
                await open_stream(listener.sockets[0].getsockname()[1], context)
            return await received

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(connect()) == b""


# --- remembered chains


def test_remembered_chain_is_refused_after_its_end():
    clock = SteppedClock(builder.NOW)
    verifier = ServerVerifier(pool_from_pem(TRUSTED), clock.now)
    chain = [leaf(not_after=builder.NOW + timedelta(minutes=1)).der()]
    verifier.check(chain, HOST)
    clock.advance(61)
    with pytest.raises(VerificationError, match="certificate has expired"):
        verifier.check(chain, HOST)


def test_remembered_chain_is_of_one_host():
    verifier, chain = ServerVerifier(pool_from_pem(TRUSTED), lambda: builder.NOW), [leaf().der()]
    verifier.check(chain, HOST)
    with pytest.raises(VerificationError, match=f"certificate is valid for {HOST}, not other"):
        verifier.check(chain, "other")


def test_refused_chain_is_checked_again():
    clock = SteppedClock(builder.BEFORE - timedelta(seconds=1))
    verifier = ServerVerifier(pool_from_pem(TRUSTED), clock.now)
    with pytest.raises(VerificationError, match="not yet valid"):
        verifier.check([leaf().der()], HOST)
    clock.advance(2)
    verifier.check([leaf().der()], HOST)
