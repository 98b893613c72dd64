"""What an Event says of the certificate in a Secret that cannot be used."""

from base64 import b64encode

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from mockube.apimachinery.randomness import SystemRandom
from mockube.component_base.clock import RealClock
from mockube.component_base.serving_certificates import self_signed_pair
from mockube.publisher.certificates import certificate_of, server_context


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


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key"])
def test_secret_with_one_half(pairs, missing):
    half = secret(*pairs[0])
    del half["data"][missing]
    assert certificate_of(half).problem == "has no tls.crt or no tls.key"


def test_secret_that_is_no_base64(pairs):
    broken = secret(*pairs[0])
    broken["data"]["tls.crt"] = "%"
    assert certificate_of(broken).problem.startswith("is no certificate with its key: ")


def test_certificate_for_a_wildcard_or_with_a_common_name_alone():
    def names_of(extension, common="*.shop.example"):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
        made = self_signed_pair(subject, extension, now=RealClock().now(), random=SystemRandom())
        return certificate_of(secret(*made))

    wild = names_of(x509.SubjectAlternativeName([x509.DNSName("*.Shop.example")]))
    assert [wild.is_for(host) for host in ("a.shop.example", "shop.example", "a.b.shop.example")] == [
        True,
        False,
        False,
    ]
    common = names_of(x509.SubjectKeyIdentifier(b"x"))
    assert common.is_for("b.shop.example")


def test_server_chooses_by_the_name_that_a_client_sends(pairs):
    own = certificate_of(secret(*pairs[0])).context
    asked = []

    def choose(name):
        asked.append(name)
        return own if name == "shop.example" else None

    context = server_context(choose, RealClock().now(), SystemRandom())

    class Connection:
        context = None

    for name, chosen in (("shop.example", own), ("other.example", None), (None, None)):
        connection = Connection()
        context.sni_callback(connection, name, context)
        assert connection.context is chosen
    assert asked == ["shop.example", "other.example", ""]
