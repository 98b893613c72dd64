"""The TLS contexts of servers: of certificate files, or of a new self-signed certificate."""

import ssl
import tempfile
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mockube.apimachinery.randomness import Random, SeededRandom

CERTIFICATE_LIFETIME: Final = timedelta(days=3650)
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the curve P-256."""
BACKDATE: Final = timedelta(minutes=5)
"""How far `notBefore` lies in the past, so that a client whose clock is slow accepts the certificate."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ssl_context.minimum_version = ssl.TLSVersion.TLSv1_2
    ssl_context.load_cert_chain(certificate, key)
    return ssl_context


def request_client_certificates(tls: ssl.SSLContext, authority: Path) -> None:
    """Request client certificates; the handshake fails for one that the CA has not signed."""
    tls.load_verify_locations(cadata=authority.read_text())
    tls.verify_mode = ssl.CERT_OPTIONAL


def self_signed_tls_context(address: str, *, now: datetime, random: Random) -> ssl.SSLContext:
    """Return a TLS context with a new self-signed certificate for an address."""
    return tls_context_of_pair(*self_signed_certificate(address, now=now, random=random))


def self_signed_certificate(address: str, *, now: datetime, random: Random) -> tuple[bytes, bytes]:
    """Return a self-signed certificate and its key, as PEM."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address(address))])
    return self_signed_pair(name, hosts, now=now, random=random)


def new_key(random: Random) -> ec.EllipticCurvePrivateKey:
    """Return a key of the curve P-256. Twice the bytes that it has make all keys equally likely (FIPS 186-5, A.2.1)."""
    return ec.derive_private_key(int.from_bytes(random.bytes(64)) % (_ORDER - 1) + 1, ec.SECP256R1())


def self_signed_pair(
    name: x509.Name, hosts: x509.SubjectAlternativeName, *, now: datetime, random: Random
) -> tuple[bytes, bytes]:
    """Return a self-signed certificate of a subject and its key, as PEM."""
    key = new_key(random)
    builder = x509.CertificateBuilder(name, name, key.public_key(), int.from_bytes(random.bytes(16)) | 1)
    builder = builder.not_valid_before(now - BACKDATE).not_valid_after(now + CERTIFICATE_LIFETIME)
    certificate = builder.add_extension(hosts, critical=False).sign(
        key, hashes.SHA256(), ecdsa_deterministic=isinstance(random, SeededRandom) or None
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def tls_context_of_pair(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return the TLS context of a certificate and its key.

    OpenSSL reads certificates from files only, so both are written to a private folder and deleted at once.
    """
    with tempfile.TemporaryDirectory() as folder:
        public, private = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        public.write_bytes(certificate)
        private.write_bytes(key)
        return tls_context(public, private)
