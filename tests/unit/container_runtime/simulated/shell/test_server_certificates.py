"""A client trusts a server whose certificate is for its name, and comes from an authority that the client has."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from mockube.container_runtime.simulated.shell.network_programs.server_certificates import problem_of

START = datetime(2026, 1, 1, tzinfo=UTC)
KEY, OTHER_KEY = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def certificate(subject, *names, issuer=None, key=KEY):
    """Return a certificate as PEM, signed by itself unless an issuer is named."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer or subject)]))
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(START)
        .not_valid_after(START + timedelta(days=1))
    )
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


PLAIN, NAMED = certificate("web"), certificate("a", "web", "*.shop.example")


@pytest.mark.parametrize(
    ("chain", "authorities", "host", "problem"),
    [
        (PLAIN, PLAIN, "web", ""),
        (PLAIN, PLAIN, "db", "SSL: certificate subject name 'web' does not match target host name 'db'"),
        (PLAIN, b"", "web", "SSL certificate problem: self-signed certificate"),
        (NAMED, NAMED, "x.shop.example", ""),
        (NAMED, NAMED, "a", "SSL: no alternative certificate subject name matches target host name 'a'"),
        (certificate("web", issuer="ca"), certificate("ca"), "web", ""),
        (
            certificate("web", issuer="ca", key=OTHER_KEY),
            certificate("ca"),
            "web",
            "SSL certificate problem: unable to get local issuer certificate",
        ),
        (PLAIN, b"no PEM", "web", "SSL certificate problem: self-signed certificate"),
    ],
)
def test_server_is_trusted_by_its_name_and_its_issuer(chain, authorities, host, problem):
    assert problem_of(chain, authorities, host) == problem
