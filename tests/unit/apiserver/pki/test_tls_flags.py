"""The versions and cipher suites of a handshake follow --tls-min-version and --tls-cipher-suites."""

import ssl

import pytest
from OpenSSL import SSL

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.config.tls import (
    cipher_suites,
    insecure_suites,
    minimum_version,
    openssl_ciphers,
    tls_version,
    values_without_effect,
)
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.apiserver.pki.reloading import Handshake, ServingCertificates
from mockube.component_base.clock import RealClock

NOW = RealClock().now()
AUTHORITY = make_authority("authority", now=NOW, random=SystemRandom())
PAIR = CertificateIssuer(AUTHORITY, now=NOW, random=SystemRandom()).issue(
    Subject(name="server", hosts=("localhost",))
)


def serving_context(version="", suites=""):
    names = cipher_suites(suites)
    return ServingCertificates(
        PAIR,
        AUTHORITY.certificate,
        handshake=Handshake(
            minimum_version=minimum_version(tls_version(version), names), ciphers=openssl_ciphers(names)
        ),
    ).context


def client_context(version=None, suite=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=AUTHORITY.certificate.decode())
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if suite is not None:
        context.set_ciphers(suite)
    return context


def handshake(server_context, client_context):
    """Return the version and the cipher suite that the two agree on; raises SSLError if there are none."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname="localhost")
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return client.version(), client.cipher()[0]


TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
ECDSA_SUITES = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"


def test_old_version_is_refused_from_minimum_version_on():
    assert handshake(serving_context(), client_context(TLS12))[0] == "TLSv1.2"
    server = serving_context("VersionTLS13")
    assert handshake(server, client_context(TLS13))[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        handshake(server, client_context(TLS12))


def test_only_named_suites_are_negotiated():
    server = serving_context(suites=ECDSA_SUITES)
    for suite in ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-SHA"):
        assert handshake(server, client_context(TLS12, suite)) == ("TLSv1.2", suite)
    with pytest.raises(ssl.SSLError):
        handshake(server, client_context(TLS12, "ECDHE-ECDSA-AES256-GCM-SHA384"))


def test_suites_of_tls_13_alone_end_tls_12():
    server = serving_context(suites="TLS_AES_128_GCM_SHA256")
    assert handshake(server, client_context(TLS13))[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        handshake(server, client_context(TLS12))


@pytest.mark.parametrize("suite", ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
def test_every_suite_of_tls_13_stays_on(suite):
    """Python's ssl cannot choose a client's suites of TLS 1.3."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_tls13_ciphersuites(suite.encode())
    client = SSL.Connection(context)
    client.set_connect_state()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving_context(suites=ECDSA_SUITES).wrap_bio(incoming, outgoing)
    with pytest.raises(SSL.WantReadError):
        client.do_handshake()
    incoming.write(client.bio_read(1 << 16))
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    client.bio_write(outgoing.read())
    client.do_handshake()
    assert (client.get_protocol_version_name(), client.get_cipher_name()) == ("TLSv1.3", suite)


def test_suites_and_versions_without_effect_are_named():
    suites = cipher_suites("TLS_RSA_WITH_RC4_128_SHA,TLS_RSA_WITH_AES_128_CBC_SHA,TLS_AES_128_GCM_SHA256")
    assert list(values_without_effect("VersionTLS11", suites)) == [
        "--tls-min-version=VersionTLS11",
        "--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA",
    ]
    assert list(values_without_effect("VersionTLS12", suites[1:])) == []
    assert list(insecure_suites(suites)) == ["TLS_RSA_WITH_RC4_128_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"]
