"""Signatures and JSON Web Keys, by PyJWT: it is imported when the first token is signed or checked.

PyJWT is not used to parse tokens, to select keys and algorithms, or to report errors.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cryptography.hazmat.primitives.asymmetric import ec, rsa

if TYPE_CHECKING:
    from jwt.algorithms import Algorithm

Public: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey
Private: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
CURVES: Final[Mapping[str, str]] = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
"""The only algorithm of a key on each curve."""
_PUBLIC: Final = ("kty", "crv", "x", "y", "n", "e")


class BadJsonWebKey(ValueError):
    """A JSON Web Key that cannot be read."""


def sign(algorithm: str, key: Private, text: bytes) -> bytes:
    signature: bytes = _algorithms()[algorithm].sign(text, key)
    return signature


def is_signed(algorithm: str, key: Public, text: bytes, signature: bytes) -> bool:
    """Return whether a text was signed with a key; False for an algorithm of another type of key."""
    allowed = RSA if isinstance(key, rsa.RSAPublicKey) else {CURVES.get(key.curve.name)}
    return algorithm in allowed and _algorithms()[algorithm].verify(text, key, signature)


def to_jwk(algorithm: str, key: Public) -> Mapping[str, str]:
    jwk: Mapping[str, str] = _algorithms()[algorithm].to_jwk(key, as_dict=True)
    return {name: jwk[name] for name in _PUBLIC if name in jwk}


def from_jwk(tree: Mapping[str, Any]) -> Public | None:
    """Return a public key; None for a key of a kind that signs no tokens."""
    type_ = tree.get("kty")
    if type_ in ("oct", "OKP"):
        return None
    if type_ not in ("RSA", "EC"):
        raise BadJsonWebKey(f"go-jose/go-jose: unknown json web key type '{type_ or ''}'")
    from jwt.exceptions import InvalidKeyError  # noqa: PLC0415 - as below

    parameters = {name: tree[name] for name in _PUBLIC if name in tree}
    try:
        public: Public = _algorithms()["RS256" if type_ == "RSA" else "ES256"].from_jwk(parameters)
    except (InvalidKeyError, TypeError, ValueError) as error:
        raise BadJsonWebKey(f"go-jose/go-jose: invalid {type_} key: {error}") from error
    return public


@cache
def _algorithms() -> Mapping[str, "Algorithm"]:
    from jwt.algorithms import ECAlgorithm, RSAAlgorithm, RSAPSSAlgorithm  # noqa: PLC0415 - it takes 4 ms

    hashes = {
        "256": (RSAAlgorithm.SHA256, RSAPSSAlgorithm.SHA256, ECAlgorithm.SHA256),
        "384": (RSAAlgorithm.SHA384, RSAPSSAlgorithm.SHA384, ECAlgorithm.SHA384),
        "512": (RSAAlgorithm.SHA512, RSAPSSAlgorithm.SHA512, ECAlgorithm.SHA512),
    }
    algorithms: dict[str, Algorithm] = {}
    for bits, (pkcs, pss, curve) in hashes.items():
        algorithms[f"RS{bits}"] = RSAAlgorithm(pkcs)
        algorithms[f"PS{bits}"] = RSAPSSAlgorithm(pss)
        algorithms[f"ES{bits}"] = ECAlgorithm(curve)
    return algorithms
