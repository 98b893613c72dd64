"""openssl on a node shows certificates as OpenSSL does."""

import shutil
import subprocess
from datetime import UTC, datetime
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mockube.apimachinery.randomness import SystemRandom
from mockube.component_base.serving_certificates import self_signed_certificate
from mockube.extras.machines.certificate_text import (
    certificate_text,
    load_certificate,
    name_text,
    time_text,
)


@pytest.fixture(scope="module")
def pair():
    return self_signed_certificate(
        "127.0.0.1", now=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), random=SystemRandom()
    )


def test_times_and_names_have_the_format_of_openssl(pair):
    certificate = load_certificate(pair[0])
    assert time_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "Jan  2 03:04:05 2026 GMT"
    assert name_text(certificate.subject).startswith(("CN = ", "O = "))


def test_other_files_are_no_certificates():
    assert load_certificate(b"# This certificate or key is not simulated.\n") is None


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_text_is_that_of_openssl(pair, tmp_path):
    assert certificate_text(load_certificate(pair[0])) == text_of_openssl(pair[0], tmp_path)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_alternative_names_of_all_kinds_are_shown(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "web")])
    names = [
        x509.DNSName("web.example"),
        x509.IPAddress(ip_address("::1")),
        x509.RFC822Name("someone@web.example"),
        x509.UniformResourceIdentifier("spiffe://web/server"),
        x509.DirectoryName(subject),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3.4")),
    ]
    built = x509.CertificateBuilder(
        issuer_name=subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=2**70,
        not_valid_before=datetime(2026, 1, 2, tzinfo=UTC),
        not_valid_after=datetime(2027, 1, 2, tzinfo=UTC),
    ).add_extension(x509.SubjectAlternativeName(names), critical=False)
    data = built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    assert certificate_text(load_certificate(data)) == text_of_openssl(data, tmp_path)


def text_of_openssl(data, folder):
    path = folder / "tls.crt"
    path.write_bytes(data)
    command = ["openssl", "x509", "-noout", "-text", "-in", path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
