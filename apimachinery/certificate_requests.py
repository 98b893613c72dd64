"""Verification of the signature of a PKCS#10 certificate request, as Go's crypto/x509 does it."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, SHA384, SHA512, HashAlgorithm
from cryptography.x509.oid import ObjectIdentifier, SignatureAlgorithmOID

Key: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

_RSA, _ECDSA, _ED25519 = "RSA", "ECDSA", "Ed25519"
_ALGORITHMS: Final[Mapping[ObjectIdentifier, tuple[str, HashAlgorithm | None]]] = {
    SignatureAlgorithmOID.RSA_WITH_SHA1: (_RSA, SHA1()),  # noqa: S303 - Go accepts it for requests
    SignatureAlgorithmOID.RSA_WITH_SHA256: (_RSA, SHA256()),
    SignatureAlgorithmOID.RSA_WITH_SHA384: (_RSA, SHA384()),
    SignatureAlgorithmOID.RSA_WITH_SHA512: (_RSA, SHA512()),
    SignatureAlgorithmOID.RSASSA_PSS: (_RSA, None),
    SignatureAlgorithmOID.ECDSA_WITH_SHA256: (_ECDSA, SHA256()),
    SignatureAlgorithmOID.ECDSA_WITH_SHA384: (_ECDSA, SHA384()),
    SignatureAlgorithmOID.ECDSA_WITH_SHA512: (_ECDSA, SHA512()),
    ObjectIdentifier("1.2.840.10045.4.1"): (_ECDSA, SHA1()),  # noqa: S303
    SignatureAlgorithmOID.ED25519: (_ED25519, None),
}
"""The signature algorithms that Go verifies: the type of the key, and the digest unless the parameters name it."""
_KEYS: Final = (
    (rsa.RSAPublicKey, _RSA, "*rsa.PublicKey", "crypto/rsa: verification error"),
    (ec.EllipticCurvePublicKey, _ECDSA, "*ecdsa.PublicKey", "x509: ECDSA verification failure"),
    (ed25519.Ed25519PublicKey, _ED25519, "ed25519.PublicKey", "x509: Ed25519 verification failure"),
)
_UNKNOWN: Final = "x509: cannot verify signature: algorithm unimplemented"


def signature_problem(request: x509.CertificateSigningRequest) -> str:
    """Return the error of an invalid signature, or "". A signature may use SHA-1 but not MD5."""
    algorithm = request.signature_algorithm_oid
    if algorithm == SignatureAlgorithmOID.RSA_WITH_MD5:
        return "x509: cannot verify signature: insecure algorithm MD5-RSA"
    algorithm_key_type, digest = _ALGORITHMS.get(algorithm, ("", None))
    try:
        key = request.public_key()
    except (UnsupportedAlgorithm, ValueError):
        return _UNKNOWN
    for key_class, key_type, go_type, failure in _KEYS:
        if algorithm_key_type and isinstance(key, key_class):
            if algorithm_key_type != key_type:
                return f"x509: signature algorithm specifies an {algorithm_key_type} public key, but have public key of type {go_type}"
            return "" if _is_signed(request, key, digest) else failure
    return _UNKNOWN


def _is_signed(request: x509.CertificateSigningRequest, key: Key, digest: HashAlgorithm | None) -> bool:
    signature, signed = request.signature, request.tbs_certrequest_bytes
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, signed)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            assert digest is not None
            key.verify(signature, signed, ec.ECDSA(digest))
        elif digest is not None:
            key.verify(signature, signed, padding.PKCS1v15(), digest)
        else:
            return _is_signed_by_pss(request, key)
    except (InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _is_signed_by_pss(request: x509.CertificateSigningRequest, key: rsa.RSAPublicKey) -> bool:
    scheme, digest = request.signature_algorithm_parameters, request.signature_hash_algorithm
    if not isinstance(scheme, padding.PSS) or digest is None:
        return False
    key.verify(request.signature, request.tbs_certrequest_bytes, scheme, digest)
    return True
