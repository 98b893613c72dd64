"""Public keys of certificates, and the signatures that they verify. MD5 and SHA-1 verify nothing."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm

from . import der
from .der import BitString, CertificateError, Reader

RSA: Final = "RSA"
ECDSA: Final = "ECDSA"
ED25519: Final = "Ed25519"
DSA: Final = "DSA"
_KEY_TYPES: Final[Mapping[str, str]] = {
    "1.2.840.113549.1.1.1": RSA,
    "1.2.840.10040.4.1": DSA,
    "1.2.840.10045.2.1": ECDSA,
    "1.3.101.112": ED25519,
}
GO_TYPES: Final[Mapping[str, str]] = {
    RSA: "*rsa.PublicKey",
    DSA: "*dsa.PublicKey",
    ECDSA: "*ecdsa.PublicKey",
    ED25519: "ed25519.PublicKey",
}
"""The names of the types in messages."""
_CURVES: Final[Mapping[str, ec.EllipticCurve]] = {
    "1.3.132.0.33": ec.SECP224R1(),
    "1.2.840.10045.3.1.7": ec.SECP256R1(),
    "1.3.132.0.34": ec.SECP384R1(),
    "1.3.132.0.35": ec.SECP521R1(),
}
_NULL: Final = b"\x05\x00"
_ED25519_BYTES: Final = 32
_MIN_RSA_BITS: Final = 1024
MAX_RSA_BITS: Final = 8192
"""The maximum that crypto/tls accepts from a server. It also limits the time of a check."""
_MAX_EXPONENT: Final = (1 << 31) - 1
"""As Go (crypto/internal/fips140/rsa/rsa.go)."""
_UNIMPLEMENTED: Final = "x509: cannot verify signature: algorithm unimplemented"
_PSS: Final = "1.2.840.113549.1.1.10"
_MGF1: Final = "1.2.840.113549.1.1.8"
_PSS_HASHES: Final[Mapping[str, HashAlgorithm]] = {
    "2.16.840.1.101.3.4.2.1": SHA256(),
    "2.16.840.1.101.3.4.2.2": SHA384(),
    "2.16.840.1.101.3.4.2.3": SHA512(),
}
Key: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


class SignatureAlgorithm(NamedTuple):
    """An algorithm: the type of its keys, and its hash. `insecure` is its name if it verifies nothing."""

    key_type: str
    digest: HashAlgorithm | None = None
    is_pss: bool = False
    insecure: str = ""


_ALGORITHMS: Final[Mapping[str, SignatureAlgorithm]] = {
    "1.2.840.113549.1.1.4": SignatureAlgorithm(RSA, insecure="MD5-RSA"),
    "1.2.840.113549.1.1.5": SignatureAlgorithm(RSA, insecure="SHA1-RSA"),
    "1.3.14.3.2.29": SignatureAlgorithm(RSA, insecure="SHA1-RSA"),
    "1.2.840.113549.1.1.11": SignatureAlgorithm(RSA, SHA256()),
    "1.2.840.113549.1.1.12": SignatureAlgorithm(RSA, SHA384()),
    "1.2.840.113549.1.1.13": SignatureAlgorithm(RSA, SHA512()),
    "1.2.840.10040.4.3": SignatureAlgorithm(DSA, insecure="DSA-SHA1"),
    "2.16.840.1.101.3.4.3.2": SignatureAlgorithm(DSA, SHA256()),
    "1.2.840.10045.4.1": SignatureAlgorithm(ECDSA, insecure="ECDSA-SHA1"),
    "1.2.840.10045.4.3.2": SignatureAlgorithm(ECDSA, SHA256()),
    "1.2.840.10045.4.3.3": SignatureAlgorithm(ECDSA, SHA384()),
    "1.2.840.10045.4.3.4": SignatureAlgorithm(ECDSA, SHA512()),
    "1.3.101.112": SignatureAlgorithm(ED25519),
}


class CertificateKey(NamedTuple):
    """A public key; `key_type` is "" for one of an unknown algorithm, and `key` is None if it verifies no signature."""

    key_type: str
    key: Key | None = None
    rsa_bits: int = 0
    rsa_problem: str = ""
    """Why an RSA key verifies no signature, although it can be parsed."""


def parse_algorithm(reader: Reader) -> tuple[str, bytes]:
    """Return the identifier and the encoded parameters of an algorithm; b"" without parameters."""
    identifier = reader.identifier("x509: malformed OID")
    if not reader:
        return identifier, b""
    return identifier, reader.any_element("x509: malformed parameters")


def signature_algorithm(identifier: str, parameters: bytes) -> SignatureAlgorithm | None:
    if identifier == _PSS:
        try:
            return _pss_algorithm(parameters)
        except CertificateError:
            return None
    algorithm = _ALGORITHMS.get(identifier)
    return None if algorithm is not None and algorithm.key_type == ED25519 and parameters else algorithm


def _pss_algorithm(parameters: bytes) -> SignatureAlgorithm | None:
    """Return the algorithm if both hashes are the same, and the salt is as long as they are."""
    fields = Reader(parameters).nested_reader(der.SEQUENCE, "")
    digest = _explicit(fields, 0).nested_reader(der.SEQUENCE, "")
    mask = _explicit(fields, 1).nested_reader(der.SEQUENCE, "")
    salt_length = _explicit(fields, 2).integer("", bits=64)
    trailer = _explicit(fields, 3).integer("", bits=64) if fields else 1
    hash_name, hash_parameters = parse_algorithm(digest)
    mask_name, mask_parameters = parse_algorithm(mask)
    mask_hash, mask_hash_parameters = parse_algorithm(Reader(mask_parameters).nested_reader(der.SEQUENCE, ""))
    chosen = _PSS_HASHES.get(hash_name)
    if mask_name != _MGF1 or mask_hash != hash_name or trailer != 1 or chosen is None:
        return None
    if not {hash_parameters, mask_hash_parameters} <= {b"", _NULL}:
        return None
    return SignatureAlgorithm(RSA, chosen, is_pss=True) if salt_length == chosen.digest_size else None


def _explicit(fields: Reader, number: int) -> Reader:
    return fields.nested_reader(der.CONTEXT | der.CONSTRUCTED | number, "")


# --- keys


def parse_key(identifier: str, parameters: bytes, bits: BitString) -> CertificateKey:
    key_type, data = _KEY_TYPES.get(identifier, ""), bits.right_aligned()
    if key_type == RSA:
        return _parse_rsa(parameters, data)
    if key_type == ECDSA:
        return _parse_ecdsa(parameters, data)
    if key_type == DSA:
        _check_dsa(parameters, data)
    elif key_type == ED25519:
        if parameters:
            raise CertificateError("x509: Ed25519 key encoded with illegal parameters")
        if len(data) != _ED25519_BYTES:
            raise CertificateError("x509: wrong Ed25519 public key size")
        return CertificateKey(ED25519, ed25519.Ed25519PublicKey.from_public_bytes(data))
    return CertificateKey(key_type)


def _parse_rsa(parameters: bytes, data: bytes) -> CertificateKey:
    if parameters != _NULL:
        raise CertificateError("x509: RSA key missing NULL parameters")
    fields = Reader(data).nested_reader(der.SEQUENCE, "x509: invalid RSA public key")
    modulus = fields.integer("x509: invalid RSA modulus")
    exponent = fields.integer("x509: invalid RSA public exponent", bits=64)
    if modulus <= 0:
        raise CertificateError("x509: RSA modulus is not a positive number")
    if exponent <= 0:
        raise CertificateError("x509: RSA public exponent is not a positive number")
    size, problem = modulus.bit_length(), _rsa_problem(modulus, exponent)
    if problem:
        return CertificateKey(RSA, rsa_bits=size, rsa_problem=problem)
    return CertificateKey(RSA, rsa.RSAPublicNumbers(exponent, modulus).public_key(), size)


def _rsa_problem(modulus: int, exponent: int) -> str:
    """Return why crypto/rsa verifies no signature with a key; "" if it does."""
    size = modulus.bit_length()
    if size < _MIN_RSA_BITS:
        return f"crypto/rsa: {size}-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)"
    if not modulus & 1:
        return "crypto/rsa: public modulus is even"
    if exponent < 2:
        return "crypto/rsa: public exponent too small or negative"
    if not exponent & 1:
        return "crypto/rsa: public exponent is even"
    if exponent > _MAX_EXPONENT:
        return "crypto/rsa: public exponent too large"
    # Go has no limit for authorities. One here keeps a check short, and OpenSSL has one of its own.
    return f"crypto/rsa: {size}-bit keys are not supported" if size > 2 * MAX_RSA_BITS else ""


def _parse_ecdsa(parameters: bytes, data: bytes) -> CertificateKey:
    curve = _CURVES.get(Reader(parameters).identifier("x509: invalid ECDSA parameters"))
    if curve is None:
        raise CertificateError("x509: unsupported elliptic curve")
    if data[:1] != b"\x04":
        raise CertificateError("ecdsa: invalid uncompressed public key")
    size = (curve.key_size + 7) // 8
    if len(data) != 1 + 2 * size:
        raise CertificateError(f"invalid P{curve.key_size} point encoding")
    try:
        return CertificateKey(ECDSA, ec.EllipticCurvePublicKey.from_encoded_point(curve, data))
    except ValueError:
        raise CertificateError(f"P{curve.key_size} point not on curve") from None


def _check_dsa(parameters: bytes, data: bytes) -> None:
    value = Reader(data).integer("x509: invalid DSA public key")
    problem = "x509: invalid DSA parameters"
    fields = Reader(parameters).nested_reader(der.SEQUENCE, problem)
    if min(value, *(fields.integer(problem) for _ in range(3))) <= 0:
        raise CertificateError("x509: zero or negative DSA parameter")


# --- signatures


def signature_problem(
    algorithm: SignatureAlgorithm | None, signed: bytes, signature: bytes, issuer: CertificateKey
) -> str:
    """Return why a signature is not that of a key; "" if it is."""
    if not issuer.key_type or algorithm is None:
        return _UNIMPLEMENTED
    if algorithm.insecure:
        return f"x509: cannot verify signature: insecure algorithm {algorithm.insecure}"
    if issuer.key_type == DSA:
        return _UNIMPLEMENTED
    if algorithm.key_type != issuer.key_type:
        return (
            f"x509: signature algorithm specifies an {algorithm.key_type} public key,"
            f" but have public key of type {GO_TYPES[issuer.key_type]}"
        )
    if issuer.rsa_problem:
        return issuer.rsa_problem
    try:
        _verify(algorithm, signed, signature, issuer.key)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        is_rsa = algorithm.key_type == RSA
        return (
            "crypto/rsa: verification error" if is_rsa else f"x509: {algorithm.key_type} verification failure"
        )
    return ""


def _verify(algorithm: SignatureAlgorithm, signed: bytes, signature: bytes, key: Key | None) -> None:
    if isinstance(key, ed25519.Ed25519PublicKey):
        key.verify(signature, signed)
        return
    assert key is not None
    assert algorithm.digest is not None
    if isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, signed, ec.ECDSA(algorithm.digest))
    elif algorithm.is_pss:
        scheme = padding.PSS(padding.MGF1(algorithm.digest), algorithm.digest.digest_size)
        key.verify(signature, signed, scheme, algorithm.digest)
    else:
        key.verify(signature, signed, padding.PKCS1v15(), algorithm.digest)
