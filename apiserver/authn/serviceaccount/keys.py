"""The keys that sign tokens, and the key set that is published."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import load_pem_x509_certificate
from msgspec import Struct

from mockube.apimachinery.gotext import base64url
from mockube.apiserver.authn.signatures import CURVES, Private, Public, is_signed, sign, to_jwk

_WRONG_KIND = (
    "tokens of service accounts are signed with RSA keys or ECDSA keys of P-256, P-384 and P-521 only"
)


_ORDER = ("use", "kty", "kid", "crv", "alg", "n", "e", "x", "y")


class BadKey(ValueError):
    """A file contains no key that can sign tokens."""


class BadSignature(Exception):
    """The text was not signed with this key."""


class PublicKey(Struct, frozen=True):
    id: str
    algorithm: str
    """The only algorithm that is accepted for this key, whatever a token's header names."""
    key: Public

    def verify(self, signature: bytes, text: bytes) -> None:
        if not is_signed(self.algorithm, self.key, text, signature):
            raise BadSignature

    def jwk(self) -> Mapping[str, str]:
        """Return the key as a JSON Web Key."""
        fields = {**to_jwk(self.algorithm, self.key), "use": "sig", "kid": self.id, "alg": self.algorithm}
        return {name: fields[name] for name in _ORDER if name in fields}


class ServiceAccountKeys:
    """One key signs tokens; tokens that any of the keys has signed are valid."""

    def __init__(self, signing: Private, others: Sequence[Public] = ()) -> None:
        self._signing = signing
        self.signer = _with_id(signing.public_key())
        public = [self.signer, *map(_with_id, others)]
        self.by_id: Mapping[str, PublicKey] = {key.id: key for key in public}

    def sign(self, text: bytes) -> bytes:
        return sign(self.signer.algorithm, self._signing, text)

    def algorithms(self) -> Sequence[str]:
        return sorted({key.algorithm for key in self.by_id.values()})

    def jwks(self) -> Mapping[str, Any]:
        return {"keys": [key.jwk() for key in self.by_id.values()]}


def load(signing: bytes, others: Sequence[bytes] = ()) -> ServiceAccountKeys:
    """Return keys read from PEM; `others`, which only verify tokens, may be private or public keys."""
    return ServiceAccountKeys(_load_private_key(signing), [_load_public_key(pem) for pem in others])


def _load_private_key(pem: bytes) -> Private:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise BadKey(f"not a private key in PEM: {error}") from error
    if isinstance(key, rsa.RSAPrivateKey):
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in CURVES:
        return key
    raise BadKey(_WRONG_KIND)


def _load_public_key(pem: bytes) -> Public:
    if b"PRIVATE KEY" in pem:
        return _load_private_key(pem).public_key()
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
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in CURVES:
        return key
    raise BadKey(_WRONG_KIND)


def _with_id(key: Public) -> PublicKey:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    der = key.public_bytes(serialization.Encoding.DER, form)
    algorithm = "RS256" if isinstance(key, rsa.RSAPublicKey) else CURVES[key.curve.name]
    return PublicKey(base64url(hashlib.sha256(der).digest()), algorithm, key)
