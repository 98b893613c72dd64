"""Keys that tokens are signed with, and what others are told of them."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509 import load_pem_x509_certificate

Private: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
Public: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey

_WRONG_KIND = (
    "tokens of service accounts are signed with RSA keys or ECDSA keys of P-256, P-384 and P-521 only"
)


@dataclass(frozen=True, slots=True)
class _Curve:
    name: str
    algorithm: str
    hash: hashes.HashAlgorithm
    width: int
    """Bytes of each half of a signature, and of each coordinate of a point."""


_CURVES: Final[Mapping[str, _Curve]] = {
    "secp256r1": _Curve("P-256", "ES256", hashes.SHA256(), 32),
    "secp384r1": _Curve("P-384", "ES384", hashes.SHA384(), 48),
    "secp521r1": _Curve("P-521", "ES512", hashes.SHA512(), 66),
}


class BadKey(ValueError):
    """A file holds no key that tokens can be signed with."""


class BadSignature(Exception):
    """The text was not signed with this key."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    id: str
    algorithm: str
    """The only one that is taken for this key, whatever a token says of itself."""
    key: Public

    def verify(self, signature: bytes, text: bytes) -> None:
        try:
            if isinstance(self.key, rsa.RSAPublicKey):
                self.key.verify(signature, text, padding.PKCS1v15(), hashes.SHA256())
            else:
                curve = _CURVES[self.key.curve.name]
                self.key.verify(_as_der(signature, curve.width), text, ec.ECDSA(curve.hash))
        except InvalidSignature as error:
            raise BadSignature from error

    def jwk(self) -> Mapping[str, str]:
        """The key as OpenID Connect publishes it."""
        head = {
            "use": "sig",
            "kty": "RSA" if isinstance(self.key, rsa.RSAPublicKey) else "EC",
            "kid": self.id,
        }
        if isinstance(self.key, rsa.RSAPublicKey):
            numbers = self.key.public_numbers()
            return head | {"alg": self.algorithm, "n": _number(numbers.n), "e": _number(numbers.e)}
        point, curve = self.key.public_numbers(), _CURVES[self.key.curve.name]
        where = {"x": _number(point.x, curve.width), "y": _number(point.y, curve.width)}
        return head | {"crv": curve.name, "alg": self.algorithm, **where}


class Keys:
    """One key signs; tokens signed with any of them are good."""

    def __init__(self, signing: Private, others: Sequence[Public] = ()) -> None:
        self._signing = signing
        self.signer = _public(signing.public_key())
        public = [self.signer, *map(_public, others)]
        self.by_id: Mapping[str, PublicKey] = {key.id: key for key in public}

    def sign(self, text: bytes) -> bytes:
        if isinstance(self._signing, rsa.RSAPrivateKey):
            return self._signing.sign(text, padding.PKCS1v15(), hashes.SHA256())
        curve = _CURVES[self._signing.curve.name]
        return _as_raw(self._signing.sign(text, ec.ECDSA(curve.hash)), curve.width)

    def algorithms(self) -> Sequence[str]:
        return sorted({key.algorithm for key in self.by_id.values()})

    def jwks(self) -> Mapping[str, Any]:
        return {"keys": [key.jwk() for key in self.by_id.values()]}


def load(signing: bytes, others: Sequence[bytes] = ()) -> Keys:
    """Keys from PEM; those that only check tokens may be private or public ones."""
    return Keys(_private(signing), [_public_of(pem) for pem in others])


def encode(data: bytes) -> str:
    """Base 64 as in tokens: for URLs, and without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _private(pem: bytes) -> Private:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise BadKey(f"not a private key in PEM: {error}") from error
    if isinstance(key, rsa.RSAPrivateKey):
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        return key
    raise BadKey(_WRONG_KIND)


def _public_of(pem: bytes) -> Public:
    if b"PRIVATE KEY" in pem:
        return _private(pem).public_key()
    try:
        key = (
            load_pem_x509_certificate(pem).public_key()
            if b"BEGIN CERTIFICATE" in pem
            else serialization.load_pem_public_key(pem)
        )
    except ValueError as error:
        raise BadKey(f"not a key in PEM: {error}") from error
    if isinstance(key, rsa.RSAPublicKey):
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return key
    raise BadKey(_WRONG_KIND)


def _public(key: Public) -> PublicKey:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    der = key.public_bytes(serialization.Encoding.DER, form)
    algorithm = "RS256" if isinstance(key, rsa.RSAPublicKey) else _CURVES[key.curve.name].algorithm
    return PublicKey(encode(hashlib.sha256(der).digest()), algorithm, key)


def _number(number: int, width: int = 0) -> str:
    return encode(number.to_bytes(width or (number.bit_length() + 7) // 8))


def _as_raw(der: bytes, width: int) -> bytes:
    r, s = decode_dss_signature(der)
    return r.to_bytes(width) + s.to_bytes(width)


def _as_der(raw: bytes, width: int) -> bytes:
    if len(raw) != 2 * width:
        raise BadSignature
    return encode_dss_signature(int.from_bytes(raw[:width]), int.from_bytes(raw[width:]))
