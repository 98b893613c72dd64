"""What a certificate authority writes into a certificate: usages, subject, names, and the digest of its signature."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.oid import NameOID

from mockube.apimachinery.randomness import SeededRandom
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.certificates.authority import (
    CertificateAuthority,
    CertificateTemplate,
    SigningError,
    issue,
    load_authority,
)

NOW = SteppedClock().now()
P256 = ec.generate_private_key(ec.SECP256R1())
JANE = [(NameOID.COMMON_NAME, "jane")]
CA = [(NameOID.COMMON_NAME, "ca")]


def name_of(attributes):
    return x509.Name([x509.NameAttribute(oid, value, _validate=False) for oid, value in attributes])


def authority_of(key=P256, *, subject=CA, has_key_id=True, lifetime=timedelta(days=1)):
    name = name_of(subject)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(NOW - timedelta(days=2)).not_valid_after(NOW + lifetime)
    if has_key_id:
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return CertificateAuthority(certificate=builder.sign(key, digest), key=key)


def request_of(subject=JANE, names=(), key=P256):
    builder = x509.CertificateSigningRequestBuilder(name_of(subject))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256())


def issued(authority=None, request=None, *usages, lifetime=timedelta(hours=1)):
    template = CertificateTemplate(usages=usages, lifetime=lifetime, now=NOW)
    pem = issue(authority or authority_of(), request or request_of(), template, SeededRandom())
    return x509.load_pem_x509_certificate(pem)


@pytest.mark.parametrize(
    ("usage", "attribute"),
    [
        ("signing", "digital_signature"),
        ("digital signature", "digital_signature"),
        ("content commitment", "content_commitment"),
        ("key encipherment", "key_encipherment"),
        ("data encipherment", "data_encipherment"),
        ("key agreement", "key_agreement"),
        ("cert sign", "key_cert_sign"),
        ("crl sign", "crl_sign"),
        ("encipher only", "encipher_only"),
        ("decipher only", "decipher_only"),
    ],
)
def test_usage_of_a_key_is_a_bit(usage, attribute):
    # Both of the last two are read only beside an agreement of keys.
    found = issued(None, None, usage, "key agreement").extensions.get_extension_for_class(x509.KeyUsage)
    assert found.critical
    assert getattr(found.value, attribute)


@pytest.mark.parametrize(
    ("usage", "identifier"),
    [
        ("any", "2.5.29.37.0"),
        ("server auth", "1.3.6.1.5.5.7.3.1"),
        ("client auth", "1.3.6.1.5.5.7.3.2"),
        ("code signing", "1.3.6.1.5.5.7.3.3"),
        ("email protection", "1.3.6.1.5.5.7.3.4"),
        ("s/mime", "1.3.6.1.5.5.7.3.4"),
        ("ipsec end system", "1.3.6.1.5.5.7.3.5"),
        ("ipsec tunnel", "1.3.6.1.5.5.7.3.6"),
        ("ipsec user", "1.3.6.1.5.5.7.3.7"),
        ("timestamping", "1.3.6.1.5.5.7.3.8"),
        ("ocsp signing", "1.3.6.1.5.5.7.3.9"),
        ("microsoft sgc", "1.3.6.1.4.1.311.10.3.3"),
        ("netscape sgc", "2.16.840.1.113730.4.1"),
    ],
)
def test_extended_usage_is_an_identifier(usage, identifier):
    found = issued(None, None, usage).extensions
    extended = found.get_extension_for_class(x509.ExtendedKeyUsage)
    assert not extended.critical
    assert [each.dotted_string for each in extended.value] == [identifier]
    with pytest.raises(x509.ExtensionNotFound):
        found.get_extension_for_class(x509.KeyUsage)


def test_certificate_without_usages_has_no_extension_for_them():
    assert {type(each.value) for each in issued().extensions} == {
        x509.BasicConstraints,
        x509.AuthorityKeyIdentifier,
    }


def test_unknown_usage_is_refused():
    with pytest.raises(SigningError, match=r"unrecognized usage values: \['flying'\]"):
        issued(None, None, "client auth", "flying")


@pytest.mark.parametrize(
    ("key", "digest"),
    [
        (rsa.generate_private_key(65537, 1024), "sha256"),
        (P256, "sha256"),
        (ec.generate_private_key(ec.SECP384R1()), "sha384"),
        (ec.generate_private_key(ec.SECP521R1()), "sha512"),
        (ed25519.Ed25519PrivateKey.generate(), None),
    ],
    ids=["RSA", "P-256", "P-384", "P-521", "Ed25519"],
)
def test_digest_is_that_of_the_key(key, digest):
    made = authority_of(key)
    found = issued(made)
    assert getattr(found.signature_hash_algorithm, "name", None) == digest
    found.verify_directly_issued_by(made.certificate)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ([(NameOID.COMMON_NAME, "a"), (NameOID.COMMON_NAME, "b")], "CN=b"),
        ([(NameOID.COMMON_NAME, "a"), (NameOID.ORGANIZATION_NAME, "o")], "CN=a,O=o"),
        ([(NameOID.ORGANIZATION_NAME, "o"), (NameOID.ORGANIZATION_NAME, "o")], "O=o"),
        ([(NameOID.ORGANIZATION_NAME, "o"), (NameOID.ORGANIZATION_NAME, "p")], "O=o+O=p"),
        ([(NameOID.SERIAL_NUMBER, "7"), (NameOID.COMMON_NAME, "a")], "2.5.4.5=7,CN=a"),
        ([(NameOID.ORGANIZATION_NAME, ""), (NameOID.COMMON_NAME, "a")], "CN=a,O="),
        ([(NameOID.TITLE, "Dr."), (NameOID.COMMON_NAME, "a")], "CN=a"),
        (
            [
                (NameOID.POSTAL_CODE, "1"),
                (NameOID.STREET_ADDRESS, "s"),
                (NameOID.LOCALITY_NAME, "l"),
                (NameOID.STATE_OR_PROVINCE_NAME, "p"),
                (NameOID.COUNTRY_NAME, "DE"),
                (NameOID.ORGANIZATIONAL_UNIT_NAME, "u"),
            ],
            "OU=u,2.5.4.17=1,STREET=s,L=l,ST=p,C=DE",
        ),
    ],
)
def test_subject_has_the_order_of_go(subject, expected):
    assert issued(None, request_of(subject)).subject.rfc4514_string() == expected


@pytest.mark.parametrize(("value", "kind"), [("jane", 0x13), ("jane@example.com", 0x0C), ("Jörg", 0x0C)])
def test_other_characters_need_another_type_of_string(value, kind):
    encoded = issued(None, request_of([(NameOID.COMMON_NAME, value)])).subject.public_bytes()
    assert bytes((kind, len(value.encode()))) + value.encode() in encoded


ALTERNATIVES = [
    x509.UniformResourceIdentifier("spiffe://a"),
    x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
    x509.DNSName("b.example.com"),
    x509.RFC822Name("a@example.com"),
    x509.DNSName("a.example.com"),
]


@pytest.mark.parametrize(("subject", "is_critical"), [(JANE, False), ([], True)])
def test_alternative_names_are_ordered_by_type(subject, is_critical):
    found = issued(None, request_of(subject, ALTERNATIVES)).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert [each.value for each in found.value] == [
        "b.example.com",
        "a.example.com",
        "a@example.com",
        "spiffe://a",
    ]
    assert found.critical is is_critical


@pytest.mark.parametrize(
    ("authority", "has_extension"),
    [({}, True), ({"has_key_id": False}, False), ({"subject": JANE}, False)],
    ids=["another subject", "no identifier", "same subject"],
)
def test_key_of_the_authority_is_identified(authority, has_extension):
    found = {type(each.value) for each in issued(authority_of(**authority)).extensions}
    assert (x509.AuthorityKeyIdentifier in found) is has_extension


@pytest.mark.parametrize(
    ("lifetime", "ends", "expected"),
    [
        (timedelta(hours=1), timedelta(days=1), timedelta(hours=1)),
        (timedelta(hours=7), timedelta(days=1), timedelta(hours=7)),
        (timedelta(hours=8), timedelta(days=1), timedelta(hours=7, minutes=55)),
        (timedelta(hours=9), timedelta(hours=2), timedelta(hours=2)),
    ],
)
def test_backdated_certificate_ends_early_if_it_is_long(lifetime, ends, expected):
    found = issued(authority_of(lifetime=ends), lifetime=lifetime)
    assert found.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert found.not_valid_after_utc == NOW + expected


@pytest.mark.parametrize(
    ("ended", "problem"),
    [
        (timedelta(minutes=0), "refusing to sign a certificate that expired in the past"),
        (timedelta(minutes=4), "refusing to sign a certificate that expired in the past"),
        (timedelta(minutes=5), "the signer has expired"),
        (timedelta(days=1), "the signer has expired"),
    ],
)
def test_authority_that_has_expired_signs_nothing(ended, problem):
    with pytest.raises(SigningError, match=problem):
        issued(authority_of(lifetime=-ended))


ED448 = ed448.Ed448PrivateKey.generate()


def test_unsupported_keys_are_refused():
    with pytest.raises(SigningError, match="unsupported public key type"):
        issued(None, SimpleNamespace(public_key=ED448.public_key))
    certificate = authority_of().certificate.public_bytes(serialization.Encoding.PEM)
    key = ED448.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(SigningError, match="the key cannot sign certificates"):
        load_authority(certificate, key)
    with pytest.raises(SigningError):
        load_authority(certificate, b"no key")
