"""Generate keys and certificates in PEM: ECDSA P-256, or RSA for the users of a kubeconfig. No files are read or written."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from mockube.apimachinery.randomness import Random, SeededRandom
from mockube.component_base.serving_certificates import new_key

AUTHORITY_YEARS, LEAF_YEARS = 10, 1
RENEW_BEFORE = timedelta(days=30)
"""A certificate that expires sooner is issued again instead of reused."""
BACKDATED = timedelta(minutes=5)
"""Certificates are backdated, so that clients whose clocks are slow accept them."""
RSA_BITS = 2048
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Pair(Struct, frozen=True, kw_only=True):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Subject(Struct, frozen=True, kw_only=True):
    """The subject of a certificate: a server has hosts, names or addresses; a client has a user and groups."""

    name: str
    groups: Sequence[str] = ()
    hosts: Sequence[str] = ()
    has_rsa_key: bool = False
    """Whether the key is an RSA key, as kubeadm's: Java's clients read no others. Generating one takes 50 ms."""


class CertificateIssuer:
    """Signs certificates with an authority's key; `now` is the time of issue, and `years` how long they are valid."""

    def __init__(self, authority: Pair, *, now: datetime, random: Random, years: int = LEAF_YEARS) -> None:
        self._certificate = x509.load_pem_x509_certificate(authority.certificate)
        self._key = _load_key(authority.key)
        self._now = now
        self._years = years
        self._random = random

    def issue(self, subject: Subject) -> Pair:
        key = _new_rsa_key() if subject.has_rsa_key else new_key(self._random)
        usage = ExtendedKeyUsageOID.SERVER_AUTH if subject.hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(
            _name(subject), self._certificate.subject, key, self._now, self._years, self._random
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if subject.hosts:
            names = x509.SubjectAlternativeName(list(map(_general_name, subject.hosts)))
            builder = builder.add_extension(names, critical=False)
        return _sign(builder, key, self._key, self._random)

    def is_usable(self, certificate: bytes, subject: Subject) -> bool:
        """Return whether this authority signed a certificate for the subject, and it does not expire within `RENEW_BEFORE`."""
        try:
            parsed_certificate = x509.load_pem_x509_certificate(certificate)
            parsed_certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, InvalidSignature):
            return False
        if subject.has_rsa_key and not isinstance(parsed_certificate.public_key(), rsa.RSAPublicKey):
            return False
        return parsed_certificate.not_valid_after_utc - self._now > RENEW_BEFORE and (
            parsed_certificate.subject == _name(subject)
            and _hosts(parsed_certificate) >= set(map(_general_name, subject.hosts))
        )


def make_authority(name: str, *, now: datetime, random: Random) -> Pair:
    """Create a self-signed certificate authority."""
    key = new_key(random)
    own = _name(Subject(name=name))
    builder = _builder(own, own, key, now, AUTHORITY_YEARS, random)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs=True), critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    return _sign(builder, key, key, random)


def make_key(random: Random) -> bytes:
    return _pem(new_key(random))


def not_after(certificate: bytes) -> datetime:
    """Return the time at which a certificate expires."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def names_of(certificate: bytes) -> Sequence[str]:
    """Return the names and addresses of a serving certificate; of a chain, those of the first certificate."""
    parsed_certificate = x509.load_pem_x509_certificate(certificate)
    return [
        str(name.value)
        for name in _hosts(parsed_certificate)
        if isinstance(name, x509.DNSName | x509.IPAddress)
    ]


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: _Key,
    now: datetime,
    years: int,
    random: Random,
) -> x509.CertificateBuilder:
    serial = int.from_bytes(random.bytes(16)) | 1
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    builder = builder.public_key(key.public_key()).serial_number(serial)
    return builder.not_valid_before(now - BACKDATED).not_valid_after(now + timedelta(days=365 * years))


def _sign(builder: x509.CertificateBuilder, key: _Key, by: _Key, random: Random) -> Pair:
    is_deterministic = isinstance(random, SeededRandom) and isinstance(by, ec.EllipticCurvePrivateKey)
    certificate = builder.sign(by, hashes.SHA256(), ecdsa_deterministic=is_deterministic or None)
    return Pair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=_pem(key))


def _new_rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, RSA_BITS)


def _pem(key: _Key) -> bytes:
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    form = serialization.PrivateFormat.TraditionalOpenSSL if is_rsa else serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _load_key(pem: bytes) -> _Key:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise TypeError("the authority's key is neither an RSA key nor an ECDSA key")
    return key


def _name(subject: Subject) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.groups]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, subject.name)])


def _general_name(host: str) -> x509.GeneralName:
    address = _address(host)
    return x509.DNSName(host) if address is None else x509.IPAddress(address)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _hosts(certificate: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
