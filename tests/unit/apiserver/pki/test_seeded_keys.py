"""Keys and certificates from a seed are the same each time; those of the system differ."""

from datetime import UTC, datetime

import pytest
from cryptography import x509

from mockube.apimachinery.randomness import SeededRandom, SystemRandom
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority, make_key
from mockube.component_base.serving_certificates import self_signed_certificate

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def made(random):
    authority = make_authority("kubernetes", now=NOW, random=random)
    pair = CertificateIssuer(authority, now=NOW, random=random, years=10).issue(Subject(name="a"))
    return authority, pair, make_key(random), self_signed_certificate("127.0.0.1", now=NOW, random=random)


def test_seed_determines_keys_and_certificates():
    assert made(SeededRandom(7)) == made(SeededRandom(7))


@pytest.mark.parametrize("sources", [(SeededRandom(1), SeededRandom(2)), (SystemRandom(), SystemRandom())])
def test_other_sources_have_other_keys(sources):
    for one, other in zip(*map(made, sources), strict=True):
        assert one != other


def test_certificate_is_valid_for_the_years_of_the_issuer():
    authority, pair, *_ = made(SeededRandom(7))
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    assert certificate.not_valid_after_utc.year == 2035
