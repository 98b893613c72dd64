"""What an Event says of the certificate in a Secret that cannot be used."""

from base64 import b64encode

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from mockube.apimachinery.randomness import SystemRandom
from mockube.component_base.clock import RealClock
from mockube.component_base.serving_certificates import self_signed_pair
from mockube.publisher.certificates import certificate_of


def pair():
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.example")])
    names = x509.SubjectAlternativeName([x509.DNSName("shop.example")])
    return self_signed_pair(subject, names, now=RealClock().now(), random=SystemRandom())


def secret(certificate, key):
    return {"data": {"tls.crt": b64encode(certificate).decode(), "tls.key": b64encode(key).decode()}}


@pytest.fixture(scope="module")
def pairs():
    return pair(), pair()


def test_certificate_is_for_its_names(pairs):
    found = certificate_of(secret(*pairs[0]))
    assert (found.problem, found.is_for("Shop.example"), found.is_for("other.example")) == ("", True, False)


def test_secret_with_the_key_of_another_certificate(pairs):
    found = certificate_of(secret(pairs[0][0], pairs[1][1]))
    assert found.problem == "has a key that is not that of its certificate"


def test_secret_without_a_certificate(pairs):
    assert certificate_of(None).problem == "does not exist"
    assert certificate_of({"data": {}}).problem == "has no tls.crt or no tls.key"
    assert certificate_of(secret(b"x", pairs[0][1])).problem.startswith("is no certificate with its key: ")
    assert certificate_of(secret(pairs[0][0], b"ENCRYPTED")).problem == "has an encrypted key"
