"""The keys of PodCertificateRequests, and the certificate chains that signers issue for them."""

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mockube.apimachinery import errors, pem
from mockube.apimachinery.certificate_requests import signature_problem
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.mail import is_mail_address
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.x509.certificate import Certificate, parse_certificate
from mockube.apimachinery.x509.der import CertificateError

_MAX_REQUEST_BYTES: Final = 10 * 1024
_MAX_CHAIN_BYTES: Final = 100 * 1024
_CERTIFICATE: Final = "CERTIFICATE"
_MIN_LIFETIME: Final = timedelta(hours=1)
_SKEW: Final = timedelta(minutes=5)
_MARGIN: Final = timedelta(minutes=10)
"""The least time between the issue of a certificate, its renewal and its end."""
_GO_CURVES: Final = {"secp224r1": "P-224", "secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
_RSA_BITS: Final = (3072, 4096)
_REQUEST: Final = ROOT.child("spec", "stubPKCS10Request")
_STATUS: Final = ROOT.child("status")
_CHAIN: Final = _STATUS.child("certificateChain")
_NOT_A_REQUEST: Final = errors.invalid(_REQUEST, errors.OMITTED, "must be a valid PKCS#10 CSR")


# --- the request


def check_stub_request(encoded: str) -> Iterator[FieldError]:
    """Check a certificate request in base64: its key, and the signature that proves possession of the key."""
    data = base64.b64decode(encoded)
    if len(data) > _MAX_REQUEST_BYTES:
        yield errors.too_long(_REQUEST, _MAX_REQUEST_BYTES)
        return
    request = _parse_request(data)
    if request is None:
        yield _NOT_A_REQUEST
        return
    if error := _key_error(_public_key(request)):
        yield error
    elif signature_problem(request):
        yield errors.invalid(_REQUEST, errors.OMITTED, "invalid signature")


def _parse_request(data: bytes) -> x509.CertificateSigningRequest | None:
    try:
        return x509.load_der_x509_csr(data)
    except ValueError:
        return None


def _public_key(request: x509.CertificateSigningRequest) -> object:
    try:
        return request.public_key()
    except (UnsupportedAlgorithm, ValueError):
        return None


def _key_error(key: object) -> FieldError | None:
    match key:
        case ed25519.Ed25519PublicKey():
            return None
        case ec.EllipticCurvePublicKey():
            curve = _GO_CURVES.get(key.curve.name, key.curve.name)
            problem = "elliptic public keys must use curve P256, P384, or P521"
            is_valid = curve in ("P-256", "P-384", "P-521")
            return None if is_valid else errors.invalid(_REQUEST, f"curve {curve}", problem)
        case rsa.RSAPublicKey():
            bits = (key.key_size + 7) // 8 * 8
            problem = "RSA keys must have modulus size 3072 or 4096"
            return None if bits in _RSA_BITS else errors.invalid(_REQUEST, f"{bits}-bit modulus", problem)
        case _:
            pass
    problem = "unknown public key type; supported types are Ed25519, ECDSA, and RSA"
    return errors.invalid(_REQUEST, errors.OMITTED, problem)


# --- the issued chain


class _Issue(NamedTuple):
    """A status with a chain, its first certificate, and its times, which are all set."""

    leaf: Certificate
    not_before: datetime
    not_after: datetime
    begin_refresh: datetime
    max_seconds: int


def check_issued(spec: ReadOnlyTree, status: ReadOnlyTree, now: datetime | None) -> Iterator[FieldError]:
    """Check the status of an issued request. `now` is compared with the times of the certificate, if it is given."""
    chain: str = status.get("certificateChain") or ""
    if len(chain.encode()) > _MAX_CHAIN_BYTES:
        yield errors.too_long(_CHAIN, _MAX_CHAIN_BYTES)
        return
    blocks = pem.blocks(chain.encode())
    leaf, problem = _leaf(blocks)
    if leaf is None:
        yield errors.invalid(_CHAIN, chain, problem)
        return
    field_errors = [*_name_errors(leaf), *_owner_errors(spec, leaf, chain)]
    if field_errors and field_errors[-1].detail in _FINAL:
        yield from field_errors
        return
    times = {name: status.get(name) for name in _TIMES}
    field_errors += [errors.required(_STATUS.child(name), _TIMES[name]) for name in _TIMES if not times[name]]
    if field_errors:
        yield from field_errors
        return
    begin, end, refresh = (parse_time(status[name]) for name in ("notBefore", "notAfter", "beginRefreshAt"))
    issue = _Issue(leaf, begin, end, refresh, spec["maxExpirationSeconds"])
    error = _time_error(issue, times, now) or _other_blocks_error(blocks[1:], chain)
    if error:
        yield error


_IN_RANGE: Final = "must be present and in the range [notbefore+10min, notafter-10min]"
_CONSISTENT: Final = "must be present and consistent with the issued certificate"
_TIMES: Final = {"notBefore": _CONSISTENT, "notAfter": _CONSISTENT, "beginRefreshAt": _IN_RANGE}
_OTHER_KEY: Final = "leaf certificate was not issued to the requested public key"
_FINAL: Final = frozenset({_OTHER_KEY, _NOT_A_REQUEST.detail})
"""Errors after which nothing more is checked."""


def _leaf(blocks: list[pem.Block]) -> tuple[Certificate | None, str]:
    if not blocks:
        return None, "issued certificate chain must contain at least one certificate"
    if blocks[0].type != _CERTIFICATE:
        return None, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"
    try:
        return parse_certificate(blocks[0].data), ""
    except CertificateError:
        return None, "leaf certificate does not parse as valid X.509"


def _name_errors(leaf: Certificate) -> Iterator[FieldError]:
    for name in leaf.extensions.names.dns:
        if not name:
            yield errors.invalid(_CHAIN, name, "leaf certificate should not contain empty DNSName")
        if ".." in name:
            yield errors.invalid(_CHAIN, name, "leaf certificate's DNSName should not contain '..'")
        if name.startswith(".") or name.endswith("."):
            yield errors.invalid(_CHAIN, name, "leaf certificate's DNSName should not start or end with '.'")
    for address in leaf.extensions.names.emails:
        if not is_mail_address(address):
            yield errors.invalid(_CHAIN, address, "leaf certificate should not contain invalid EmailAddress")


def _owner_errors(spec: ReadOnlyTree, leaf: Certificate, chain: str) -> Iterator[FieldError]:
    """Check that a certificate has the key of the request."""
    request = _parse_request(base64.b64decode(spec.get("stubPKCS10Request") or ""))
    if request is None:
        yield _NOT_A_REQUEST
        return
    key = _public_key(request)
    if isinstance(key, ed25519.Ed25519PublicKey | rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        issued = leaf.key.key
        if issued is None or _key_bytes(issued) != _key_bytes(key):
            yield errors.invalid(_CHAIN, chain, _OTHER_KEY)


def _key_bytes(key: ed25519.Ed25519PublicKey | rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _time_error(issue: _Issue, times: ReadOnlyTree, now: datetime | None) -> FieldError | None:
    """Return the first error of the times of a certificate and of its status."""

    def error(name: str, problem: str) -> FieldError:
        return errors.invalid(_STATUS.child(name), times[name], problem)

    leaf = issue.leaf
    if issue.not_before != leaf.not_before:
        return error("notBefore", "must be set to the NotBefore time encoded in the leaf certificate")
    if now is not None and not now - _SKEW < issue.not_before < now + _SKEW:
        return error("notBefore", "must be set to within 5 minutes of kube-apiserver's current time")
    if issue.not_after != leaf.not_after:
        return error("notAfter", "must be set to the NotAfter time encoded in the leaf certificate")
    lifetime = leaf.not_after - leaf.not_before
    if lifetime < _MIN_LIFETIME:
        return errors.invalid(_CHAIN, _nanoseconds(lifetime), "leaf certificate lifetime must be >= 1 hour")
    if lifetime > timedelta(seconds=issue.max_seconds):
        problem = f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({issue.max_seconds})"
        return errors.invalid(_CHAIN, _nanoseconds(lifetime), problem)
    if issue.begin_refresh < issue.not_before + _MARGIN:
        return error("beginRefreshAt", "must be at least 10 minutes after status.notBefore")
    if issue.begin_refresh > issue.not_after - _MARGIN:
        return error("beginRefreshAt", "must be at least 10 minutes before status.notAfter")
    return None


def _nanoseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000


def _other_blocks_error(blocks: list[pem.Block], chain: str) -> FieldError | None:
    """Return the error of the first block after the certificate that is no certificate either."""
    for block in blocks:
        if block.type != _CERTIFICATE:
            # Upstream misspells the word here.
            problem = "issued certificate chain must consist entirely of CERTFICATE PEM blocks"
            return errors.invalid(_CHAIN, chain, problem)
        try:
            parse_certificate(block.data)
        except CertificateError:
            return errors.invalid(_CHAIN, chain, "intermediate certificate does not parse as valid X.509")
    return None
