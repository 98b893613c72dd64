"""What the process shows of itself, and whom it knows.

Where it was given no certificate it makes one for itself: encryption, but no proof of who it is.
"""

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

from apimachinery.chance import Chance

LIFE: Final = timedelta(days=365)
BACKDATED: Final = timedelta(minutes=5)
"""So that a client whose clock is a little behind takes it too."""


def context(certificate: Path, key: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.load_cert_chain(certificate, key)
    return made


def know_clients(tls: ssl.SSLContext, authority: Path) -> None:
    """A client may show a certificate; one that the authority has not signed is turned away at the door."""
    tls.load_verify_locations(cadata=authority.read_text())
    tls.verify_mode = ssl.CERT_OPTIONAL


def self_signed(address: str, *, now: datetime, chance: Chance) -> ssl.SSLContext:
    """OpenSSL reads certificates from files alone, so it lies in one for a moment, where nobody else can read."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address(address))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), int.from_bytes(chance.bytes(16)) | 1)
    builder = builder.not_valid_before(now - BACKDATED).not_valid_after(now + LIFE)
    certificate = builder.add_extension(hosts, critical=False).sign(key, hashes.SHA256())
    with tempfile.TemporaryDirectory() as folder:
        public, private = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return context(public, private)
