"""The claims of a Secret's token, and their signing as a JSON Web Signature."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import base64url
from mockube.apimachinery.tree import ReadOnlyTree

ISSUER: Final = "kubernetes/serviceaccount"
_CLAIM: Final = "kubernetes.io/serviceaccount/"
_CURVES: Final[Mapping[int, tuple[str, hashes.HashAlgorithm]]] = {
    256: ("ES256", hashes.SHA256()),
    384: ("ES384", hashes.SHA384()),
    521: ("ES512", hashes.SHA512()),
}

SignToken = Callable[[Mapping[str, Any]], str]
"""Returns the signed token of claims."""


class InvalidKey(ValueError):
    """The key is not a private key that can sign tokens."""


def claims_of(account: ReadOnlyTree, secret: ReadOnlyTree) -> Mapping[str, Any]:
    """Return the claims of a Secret's token. They have no expiry: the token is valid as long as the Secret exists."""
    namespace, name = meta.namespace(account), meta.name(account)
    return {
        "iss": ISSUER,
        f"{_CLAIM}namespace": namespace,
        f"{_CLAIM}secret.name": meta.name(secret),
        f"{_CLAIM}service-account.name": name,
        f"{_CLAIM}service-account.uid": meta.uid(account),
        "sub": f"system:serviceaccount:{namespace}:{name}",
    }


def token_signer(pem: bytes) -> SignToken:
    """Return a function that signs tokens with a PEM key, RSA or elliptic curve; raise `InvalidKey` for others."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, ValueError) as error:
        raise InvalidKey(f"no private key: {error}") from error
    if isinstance(key, rsa.RSAPrivateKey):
        rsa_key = key
        return _jws("RS256", key, lambda data: rsa_key.sign(data, padding.PKCS1v15(), hashes.SHA256()))
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.key_size in _CURVES:
        algorithm, digest = _CURVES[key.key_size]
        curve_key = key
        return _jws(algorithm, key, lambda data: _sign_by_curve(curve_key, data, digest))
    raise InvalidKey("the key is neither RSA nor of a usual elliptic curve")


def _jws(
    algorithm: str, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, sign: Callable[[bytes], bytes]
) -> SignToken:
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header = _encode({"alg": algorithm, "kid": base64url(hashlib.sha256(public).digest())})

    def token(claims: Mapping[str, Any]) -> str:
        body = f"{header}.{_encode(claims)}"
        return f"{body}.{base64url(sign(body.encode()))}"

    return token


def _sign_by_curve(key: ec.EllipticCurvePrivateKey, data: bytes, digest: hashes.HashAlgorithm) -> bytes:
    """Return both numbers of the signature, each as long as the curve's."""
    length = (key.key_size + 7) // 8
    pair = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
    return b"".join(number.to_bytes(length, "big") for number in pair)


def _encode(value: Mapping[str, Any]) -> str:
    return base64url(orjson.dumps(value))
