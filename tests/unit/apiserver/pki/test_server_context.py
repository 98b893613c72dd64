"""TLS connections of the server: any certificate of a client is received, and none is verified here."""

import ssl

import pytest
from OpenSSL import SSL

from mockube.apimachinery.x509.tls import client_context
from mockube.apiserver.pki import server_context as contexts
from mockube.apiserver.pki.issue import Pair
from mockube.apiserver.pki.reloading import ServingCertificates
from mockube.component_base.clock import RealClock
from tests.support.chains import builder as b
from tests.support.chains import shapes
from tests.support.chains.builder import key
from tests.support.chains.clients import AUTHORITY, client_certificate
from tests.support.chains.memory_connection import MemoryConnection
from tests.support.chains.served import pem, private_pem, server_context


@pytest.fixture(autouse=True, params=["of the interpreter", "of pyOpenSSL"])
def library(request, monkeypatch):
    """Each test runs with the OpenSSL of `ssl`, and as where that cannot be called."""
    if request.param == "of pyOpenSSL":
        monkeypatch.setattr(contexts, "_library", lambda: None)


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
PROXIES = shapes.middle(subject="CN=proxies").der()
PAIR = Pair(certificate=pem(shapes.leaf().der()), key=private_pem(key("p256-leaf")))
UNTRUSTED = client_certificate(issuer="CN=middle", signer=key("p256-middle"))
MIDDLE = shapes.middle().der()


def connect(tmp_path, *chain, version=ssl.TLSVersion.TLSv1_3, settings=None):
    """Return a connection of a client with a chain to a server that trusts other CAs."""
    if chain:
        server_context(tmp_path, chain, key("p256-leaf"))  # writes the file of the client
    client = client_context(None, RealClock().now)
    client.minimum_version = client.maximum_version = version
    if chain:
        client.load_cert_chain(tmp_path / "chain.pem")
    if settings:
        settings(client)
    connection = MemoryConnection(client, ServingCertificates(PAIR, pem(AUTHORITY), pem(PROXIES)).context)
    connection.connect()
    return connection


EXPIRED = client_certificate(not_after=b.BEFORE)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "chain",
    [(), (UNTRUSTED,), (UNTRUSTED, MIDDLE), (client_certificate(usages=[b.SERVER]),), (EXPIRED,)],
    ids=["none", "untrusted", "with intermediate", "of a server", "expired"],
)
def test_any_chain_of_client_is_received(tmp_path, version, chain):
    connection = connect(tmp_path, *chain, version=version)
    assert connection.server.received_chain() == [*chain]
    assert connection.server.getpeercert() is None
    assert connection.server.version() == connection.client.version()


def test_names_of_all_authorities_are_sent():
    client = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD))
    client.set_connect_state()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = ServingCertificates(PAIR, pem(AUTHORITY), pem(PROXIES)).context.wrap_bio(incoming, outgoing)
    with pytest.raises(SSL.WantReadError):
        client.do_handshake()
    incoming.write(client.bio_read(1 << 16))
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    client.bio_write(outgoing.read())
    client.do_handshake()
    assert [name.commonName for name in client.get_client_ca_list()] == ["root", "proxies"]


@pytest.mark.parametrize("version", VERSIONS)
def test_session_is_not_resumed(version):
    """A resumed session would have the client's certificate without the intermediates."""
    client = client_context(None, RealClock().now)
    client.minimum_version = client.maximum_version = version
    server = ServingCertificates(PAIR, pem(AUTHORITY)).context
    first, second = MemoryConnection(client, server), MemoryConnection(client, server)
    first.connect()
    first.server.write(b"data")
    assert first.client.read() == b"data"
    second.client.session = first.client.session
    second.connect()
    assert not second.client.session_reused


@pytest.mark.parametrize("size", [1, 16 * 1024, 16 * 1024 + 1, 1_000_000])
def test_all_data_are_written_and_read(tmp_path, size):
    connection = connect(tmp_path)
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert connection.server.write(memoryview(data)) == size
    assert b"".join(read_all(connection.client)) == data
    connection.client.write(data)
    connection.send_to_server()
    assert b"".join(read_all(connection.server)) == data
    assert connection.server.pending() == 0


def read_all(side):
    while True:
        try:
            yield side.read(1 << 20)
        except ssl.SSLWantReadError:
            return


def test_data_that_arrived_with_end_of_handshake_are_pending(tmp_path):
    client = client_context(None, RealClock().now)
    connection = MemoryConnection(client, ServingCertificates(PAIR, pem(AUTHORITY)).context)
    while not connection.step(connection.client):
        connection.send_to_server()
        connection.step(connection.server)
    connection.client.write(b"request")
    connection.send_to_server()
    assert connection.step(connection.server)
    assert connection.incoming.pending or connection.server.pending()
    assert connection.server.read() == b"request"


def read_end(side):
    """Read the end of the data; `ssl` raises an error for it, which event loops handle."""
    try:
        return side.read()
    except ssl.SSLZeroReturnError:
        return b""


def test_connection_is_closed_by_both_sides(tmp_path):
    connection = connect(tmp_path)
    with pytest.raises(ssl.SSLWantReadError):
        connection.server.unwrap()
    assert connection.client.read() == b""
    connection.client.unwrap()
    connection.send_to_server()
    assert read_end(connection.server) == b""
    connection.server.unwrap()


def test_handshake_without_tls_is_an_error():
    context = ServingCertificates(PAIR, pem(AUTHORITY)).context
    incoming = ssl.MemoryBIO()
    incoming.write(b"DELETE / HTTP/1.1\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        context.wrap_bio(incoming, ssl.MemoryBIO()).do_handshake()


def test_key_of_another_certificate_is_an_error():
    with pytest.raises(ssl.SSLError):
        ServingCertificates(Pair(certificate=PAIR.certificate, key=private_pem(key("p256-root"))), b"")


@pytest.mark.parametrize(
    ("offered", "selected"), [(["h2", "http/1.1"], "http/1.1"), (["h2"], None), ([], None)]
)
def test_only_http_1_1_is_selected(tmp_path, offered, selected):
    connection = connect(tmp_path, settings=lambda client: client.set_alpn_protocols(offered))
    assert connection.client.selected_alpn_protocol() == selected
