"""Make a certificate of a request, as upstream's CertificateAuthority with its permissive policy does. Pure but for `Files`."""

import logging
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtensionOID, NameOID
from msgspec import Struct

from mockube.apimachinery.certificate_requests import signature_problem
from mockube.apimachinery.randomness import Random

LOG = logging.getLogger(__name__)

BACKDATE: Final = timedelta(minutes=5)
SHORT: Final = timedelta(hours=8)
"""Certificates of less do not end earlier for having been backdated."""

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

_KEY_USAGES: Final = {
    "signing": 0,
    "digital signature": 0,
    "content commitment": 1,
    "key encipherment": 2,
    "data encipherment": 3,
    "key agreement": 4,
    "cert sign": 5,
    "crl sign": 6,
    "encipher only": 7,
    "decipher only": 8,
}
"""The place of each in the bits of the extension."""
_EXTENDED_USAGES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
"""In the order in which a certificate lists them."""
_SUBJECT: Final = (
    NameOID.COUNTRY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
)
"""Go's order; each has all its values in one relative name."""
_LAST_COUNTS: Final = (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER)
_PRINTABLE: Final = re.compile(r"[A-Za-z0-9 '()+,\-./:=?]*")
_NAMES: Final = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)


class CannotSign(ValueError):
    """Why there is no certificate."""


class Authority(Struct, frozen=True, kw_only=True):
    certificate: x509.Certificate
    key: Key


class Terms(Struct, frozen=True, kw_only=True):
    """What a certificate is made with, besides the request."""

    usages: Sequence[str]
    lifetime: timedelta
    now: datetime


def load_authority(certificate: bytes, key: bytes) -> Authority:
    """Of PEM; `CannotSign` where it is not one certificate and its key."""
    try:
        certificates = x509.load_pem_x509_certificates(certificate)
        loaded = serialization.load_pem_private_key(key, password=None)
    except (TypeError, ValueError) as error:
        raise CannotSign(str(error)) from error
    if len(certificates) != 1:
        raise CannotSign(f"expected 1 certificate, found {len(certificates)}")
    if not isinstance(loaded, Key):
        raise CannotSign("the key cannot sign certificates")
    return Authority(certificate=certificates[0], key=loaded)


class Files:
    """An authority in two files, which is read again after they have changed."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self._last_stamp = self._stamp()
        self._authority = self._read()

    def current(self) -> Authority:
        """What the files hold; while they hold nothing good, what they held before."""
        try:
            stamp = self._stamp()
            if stamp != self._last_stamp:
                self._authority, self._last_stamp = self._read(), stamp
        except (CannotSign, OSError) as error:
            LOG.warning("The CA in %s was not reloaded: %s", self._paths[0], error)
        return self._authority

    def _read(self) -> Authority:
        certificate, key = self._paths
        return load_authority(certificate.read_bytes(), key.read_bytes())

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        file_stats = [path.stat() for path in self._paths]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in file_stats)


def issue(
    authority: Authority, request: x509.CertificateSigningRequest, terms: Terms, random: Random
) -> bytes:
    """Return the certificate as PEM, or raise `CannotSign`."""
    public = request.public_key()
    if not isinstance(public, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        raise CannotSign("failed to sign certificate: x509: unsupported public key type")
    if signature_problem(request):
        raise CannotSign("unable to verify certificate request signature")
    begins, ends = _validity(terms, authority.certificate.not_valid_after_utc)
    builder = (
        x509.CertificateBuilder()
        .serial_number(int.from_bytes(random.bytes(16)) or 1)
        .issuer_name(authority.certificate.subject)
        .public_key(public)
        .not_valid_before(begins)
        .not_valid_after(ends)
    )
    try:
        subject = _subject(request.subject)
        builder = builder.subject_name(subject)
        for extension, is_critical in _extensions(authority, request, subject, terms.usages):
            builder = builder.add_extension(extension, critical=is_critical)
        certificate = builder.sign(authority.key, _digest(authority.key))
    except ValueError as error:
        raise CannotSign(f"failed to sign certificate: {error}") from error
    return certificate.public_bytes(serialization.Encoding.PEM)


def _validity(terms: Terms, authority_ends: datetime) -> tuple[datetime, datetime]:
    now = terms.now.replace(microsecond=0)
    begins = now - BACKDATE
    ends = now + terms.lifetime - (BACKDATE if terms.lifetime >= SHORT else timedelta())
    if begins >= authority_ends:
        raise CannotSign(f"the signer has expired: NotAfter={authority_ends}")
    if now >= authority_ends:
        raise CannotSign(
            f"refusing to sign a certificate that expired in the past: NotAfter={authority_ends}"
        )
    return begins, min(ends, authority_ends)


def _subject(name: x509.Name) -> x509.Name:
    parts = []
    for oid in (*_SUBJECT, *_LAST_COUNTS):
        values = [str(attribute.value) for attribute in name.get_attributes_for_oid(oid)]
        if oid in _LAST_COUNTS:
            values = [value for value in values[-1:] if value]
        attributes = [_attribute(oid, value) for value in dict.fromkeys(values)]
        if attributes:
            parts.append(x509.RelativeDistinguishedName(attributes))
    return x509.Name(parts)


def _attribute(oid: x509.ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
    kind = _ASN1Type.PrintableString if _PRINTABLE.fullmatch(value) else _ASN1Type.UTF8String
    return x509.NameAttribute(oid, value, kind, _validate=False)


def _extensions(
    authority: Authority, request: x509.CertificateSigningRequest, subject: x509.Name, usages: Sequence[str]
) -> Iterator[tuple[x509.ExtensionType, bool]]:
    """In Go's order, with whether each is critical."""
    unknown = [usage for usage in usages if usage not in _KEY_USAGES and usage not in _EXTENDED_USAGES]
    if unknown:
        raise CannotSign(f"unrecognized usage values: {unknown}")
    bits = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if bits:
        yield x509.UnrecognizedExtension(ExtensionOID.KEY_USAGE, _bit_string(bits)), True
    extended = [oid for usage, oid in _EXTENDED_USAGES.items() if usage in usages]
    if extended:
        yield x509.ExtendedKeyUsage([*map(x509.ObjectIdentifier, dict.fromkeys(extended))]), False
    yield x509.BasicConstraints(ca=False, path_length=None), True
    key_id = _key_id(authority.certificate)
    if key_id is not None and authority.certificate.subject != subject:
        yield x509.AuthorityKeyIdentifier(key_id, None, None), False
    if names := _alternative_names(request):
        yield x509.SubjectAlternativeName(names), not subject.rdns


def _bit_string(bits: set[int]) -> bytes:
    """DER, without zeros at the end."""
    length = max(bits) + 1
    size = (length + 7) // 8
    value = sum(1 << (size * 8 - 1 - bit) for bit in bits)
    return bytes((3, size + 1, size * 8 - length)) + value.to_bytes(size, "big")


def _key_id(certificate: x509.Certificate) -> bytes | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def _alternative_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """Kind by kind; those of other kinds are left out."""
    try:
        extension = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name for kind in _NAMES for name in extension if isinstance(name, kind)]


def _digest(key: Key) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.key_size > 256:
        return hashes.SHA384() if key.key_size == 384 else hashes.SHA512()
    return hashes.SHA256()
