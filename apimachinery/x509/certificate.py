"""A certificate, and its parser."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from . import der
from .der import CertificateError, Reader
from .extensions import Extensions, parse_extensions
from .keys import CertificateKey, SignatureAlgorithm, parse_algorithm, parse_key, signature_algorithm
from .subjects import SubjectName, parse_name

_VERSION: Final = der.CONTEXT | der.CONSTRUCTED
_EXTENSIONS: Final = der.CONTEXT | der.CONSTRUCTED | 3


class Certificate(Struct, frozen=True, kw_only=True, eq=False):
    raw: bytes
    signed: bytes
    """The part that the issuer signed."""
    version: int
    serial: int
    issuer: bytes
    """The encoded name of the issuer."""
    subject: bytes
    subject_name: SubjectName
    not_before: datetime
    not_after: datetime
    key: CertificateKey
    raw_key: bytes
    extensions: Extensions
    algorithm: SignatureAlgorithm | None
    """The algorithm of the signature; None if it is unknown."""
    signature: bytes


def parse_certificate(data: bytes) -> Certificate:
    """Parse a certificate in DER; raise CertificateError."""
    outer = Reader(data)
    certificate = outer.nested_reader(der.SEQUENCE, "x509: malformed certificate")
    signed = certificate.element(der.SEQUENCE, "x509: malformed tbs certificate")
    fields = Reader(signed).nested_reader(der.SEQUENCE, "x509: malformed tbs certificate")
    version = _version(fields)
    serial = fields.integer("x509: malformed serial number")
    if serial < 0:
        raise CertificateError("x509: negative serial number")
    algorithm = _algorithm(fields, certificate)
    issuer = fields.element(der.SEQUENCE, "x509: malformed issuer")
    parse_name(issuer)
    validity = fields.nested_reader(der.SEQUENCE, "x509: malformed validity")
    not_before, not_after = _time(validity), _time(validity)
    subject = fields.element(der.SEQUENCE, "x509: malformed issuer")
    subject_name = parse_name(subject)
    raw_key = fields.element(der.SEQUENCE, "x509: malformed spki")
    key = _key(raw_key)
    extensions = _extensions(fields, version)
    signature = certificate.bits("x509: malformed signature").right_aligned()
    if outer:
        raise CertificateError("x509: trailing data")
    return Certificate(
        raw=data,
        signed=signed,
        version=version,
        serial=serial,
        issuer=issuer,
        subject=subject,
        subject_name=subject_name,
        not_before=not_before,
        not_after=not_after,
        key=key,
        raw_key=raw_key,
        extensions=extensions,
        algorithm=algorithm,
        signature=signature,
    )


def _version(fields: Reader) -> int:
    """Return the version as people count it, from 1 to 3."""
    encoded = fields.optional(_VERSION, "x509: malformed version")
    if encoded is None:
        return 1
    reader = Reader(encoded)
    version = reader.integer("x509: malformed version", bits=64)
    if reader or version < 0:
        raise CertificateError("x509: malformed version")
    if version > 2:
        raise CertificateError("x509: invalid version")
    return version + 1


def _algorithm(fields: Reader, certificate: Reader) -> SignatureAlgorithm | None:
    inner = fields.content(der.SEQUENCE, "x509: malformed signature algorithm identifier")
    if inner != certificate.content(der.SEQUENCE, "x509: malformed algorithm identifier"):
        raise CertificateError("x509: inner and outer signature algorithm identifiers don't match")
    return signature_algorithm(*parse_algorithm(Reader(inner)))


def _time(validity: Reader) -> datetime:
    if validity.peek(der.UTC_TIME):
        return validity.time(der.UTC_TIME, "x509: malformed UTCTime")
    if validity.peek(der.GENERALIZED_TIME):
        return validity.time(der.GENERALIZED_TIME, "x509: malformed GeneralizedTime")
    raise CertificateError("x509: unsupported time format")


def _key(raw_key: bytes) -> CertificateKey:
    fields = Reader(raw_key).nested_reader(der.SEQUENCE, "x509: malformed spki")
    algorithm = fields.nested_reader(der.SEQUENCE, "x509: malformed public key algorithm identifier")
    identifier, parameters = parse_algorithm(algorithm)
    return parse_key(identifier, parameters, fields.bits("x509: malformed subjectPublicKey"))


def _extensions(fields: Reader, version: int) -> Extensions:
    if version > 1:
        fields.optional(der.CONTEXT | 1, "x509: malformed issuerUniqueID")
        fields.optional(der.CONTEXT | 2, "x509: malformed subjectUniqueID")
    if version < 3:
        return Extensions()
    encoded = fields.optional(_EXTENSIONS, "x509: malformed extensions")
    return Extensions() if encoded is None else parse_extensions(encoded)
