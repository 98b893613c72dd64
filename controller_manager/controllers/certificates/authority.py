"""A certificate authority that issues certificates like upstream's CertificateAuthority with its permissive policy."""

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

_BACKDATE: Final = timedelta(minutes=5)
_SHORT_LIFETIME: Final = timedelta(hours=8)
"""The end of certificates with a shorter lifetime is not moved by the backdating."""

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
"""The bit of each usage in the extension."""
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
"""The object identifiers of usages, in their order in a certificate."""
_MULTI_VALUE_ATTRIBUTES: Final = (
    NameOID.COUNTRY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
)
"""The attributes of the subject in Go's order; all values of one are in one relative name."""
_SINGLE_VALUE_ATTRIBUTES: Final = (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER)
_PRINTABLE: Final = re.compile(r"[A-Za-z0-9 '()+,\-./:=?]*")
_ALTERNATIVE_NAME_TYPES: Final = (
    x509.DNSName,
    x509.RFC822Name,
    x509.IPAddress,
    x509.UniformResourceIdentifier,
)


class SigningError(ValueError):
    """A certificate cannot be issued."""


class CertificateAuthority(Struct, frozen=True, kw_only=True):
    certificate: x509.Certificate
    key: Key


class CertificateTemplate(Struct, frozen=True, kw_only=True):
    """The fields of a certificate that are not from the request."""

    usages: Sequence[str]
    lifetime: timedelta
    now: datetime


def load_authority(certificate: bytes, key: bytes) -> CertificateAuthority:
    """Load an authority from PEM; raise `SigningError` unless it is one certificate and a key."""
    try:
        certificates = x509.load_pem_x509_certificates(certificate)
        private_key = serialization.load_pem_private_key(key, password=None)
    except (TypeError, ValueError) as error:
        raise SigningError(str(error)) from error
    if len(certificates) != 1:
        raise SigningError(f"expected 1 certificate, found {len(certificates)}")
    if not isinstance(private_key, Key):
        raise SigningError("the key cannot sign certificates")
    return CertificateAuthority(certificate=certificates[0], key=private_key)


class CertificateAuthorityFiles:
    """A certificate authority in two files, which are read again after they have changed."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self._last_stamp = self._stamp()
        self._authority = self._read()

    def current(self) -> CertificateAuthority:
        """Return the authority in the files; while they are invalid, the last valid one."""
        try:
            stamp = self._stamp()
            if stamp != self._last_stamp:
                self._authority, self._last_stamp = self._read(), stamp
        except (SigningError, OSError) as error:
            LOG.warning("The CA in %s was not reloaded: %s", self._paths[0], error)
        return self._authority

    def _read(self) -> CertificateAuthority:
        certificate, key = self._paths
        return load_authority(certificate.read_bytes(), key.read_bytes())

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        file_stats = [path.stat() for path in self._paths]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in file_stats)


def issue(
    authority: CertificateAuthority,
    request: x509.CertificateSigningRequest,
    template: CertificateTemplate,
    random: Random,
) -> bytes:
    """Return the certificate as PEM, or raise `SigningError`."""
    public_key = request.public_key()
    if not isinstance(public_key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        raise SigningError("failed to sign certificate: x509: unsupported public key type")
    if signature_problem(request):
        raise SigningError("unable to verify certificate request signature")
    not_before, not_after = _validity(template, authority.certificate.not_valid_after_utc)
    builder = (
        x509.CertificateBuilder()
        .serial_number(int.from_bytes(random.bytes(16)) or 1)
        .issuer_name(authority.certificate.subject)
        .public_key(public_key)
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )
    try:
        subject = _subject(request.subject)
        builder = builder.subject_name(subject)
        for extension, is_critical in _extensions(authority, request, subject, template.usages):
            builder = builder.add_extension(extension, critical=is_critical)
        certificate = builder.sign(authority.key, _digest(authority.key))
    except ValueError as error:
        raise SigningError(f"failed to sign certificate: {error}") from error
    return certificate.public_bytes(serialization.Encoding.PEM)


def _validity(template: CertificateTemplate, authority_ends: datetime) -> tuple[datetime, datetime]:
    now = template.now.replace(microsecond=0)
    not_before = now - _BACKDATE
    not_after = now + template.lifetime - (_BACKDATE if template.lifetime >= _SHORT_LIFETIME else timedelta())
    if not_before >= authority_ends:
        raise SigningError(f"the signer has expired: NotAfter={authority_ends}")
    if now >= authority_ends:
        raise SigningError(
            f"refusing to sign a certificate that expired in the past: NotAfter={authority_ends}"
        )
    return not_before, min(not_after, authority_ends)


def _subject(name: x509.Name) -> x509.Name:
    parts = []
    for oid in (*_MULTI_VALUE_ATTRIBUTES, *_SINGLE_VALUE_ATTRIBUTES):
        values = [str(attribute.value) for attribute in name.get_attributes_for_oid(oid)]
        if oid in _SINGLE_VALUE_ATTRIBUTES:
            values = [value for value in values[-1:] if value]
        attributes = [_attribute(oid, value) for value in dict.fromkeys(values)]
        if attributes:
            parts.append(x509.RelativeDistinguishedName(attributes))
    return x509.Name(parts)


def _attribute(oid: x509.ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
    kind = _ASN1Type.PrintableString if _PRINTABLE.fullmatch(value) else _ASN1Type.UTF8String
    return x509.NameAttribute(oid, value, kind, _validate=False)


def _extensions(
    authority: CertificateAuthority,
    request: x509.CertificateSigningRequest,
    subject: x509.Name,
    usages: Sequence[str],
) -> Iterator[tuple[x509.ExtensionType, bool]]:
    """Yield the extensions in Go's order, with whether each is critical."""
    unknown = [usage for usage in usages if usage not in _KEY_USAGES and usage not in _EXTENDED_USAGES]
    if unknown:
        raise SigningError(f"unrecognized usage values: {unknown}")
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
    """Return a bit string as DER, without zeros at the end."""
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
    """Return the alternative names by type; other types are ignored."""
    try:
        extension = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name for kind in _ALTERNATIVE_NAME_TYPES for name in extension if isinstance(name, kind)]


def _digest(key: Key) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.key_size > 256:
        return hashes.SHA384() if key.key_size == 384 else hashes.SHA512()
    return hashes.SHA256()
