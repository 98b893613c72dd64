"""JSON Web Tokens in their compact form: three parts of base 64 with dots between them.

Written out here, for it is little: exactly the algorithm that belongs to a key is taken, and nothing of a token is
believed before its signature was checked, but for the issuer, which tells whether the token is ours to judge.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypeAlias

import orjson

from apiserver.authn.bearer import BadToken
from apiserver.authn.serviceaccount.keys import BadSignature, Keys, encode

Claims: TypeAlias = Mapping[str, Any]


def sign(keys: Keys, claims: Claims) -> str:
    header = {"alg": keys.signer.algorithm, "kid": keys.signer.id}
    text = f"{encode(orjson.dumps(header))}.{encode(orjson.dumps(claims))}"
    return f"{text}.{encode(keys.sign(text.encode()))}"


def issuer(token: str) -> str:
    """Who says to have issued a token, which nobody has checked; "" if it is no token of this form."""
    parts = token.split(".")
    claims = _object(parts[1]) if len(parts) == 3 else None
    found = claims.get("iss") if claims is not None else None
    return found if isinstance(found, str) else ""


def verify(keys: Keys, token: str) -> Claims:
    """The claims of a token that one of the keys has signed."""
    text, _, signature = token.rpartition(".")
    header, _, payload = text.partition(".")
    head, claims, signed = _object(header), _object(payload), _decoded(signature)
    if head is None or claims is None or signed is None:
        raise BadToken("invalid token")
    key = keys.by_id.get(str(head.get("kid", "")))
    if key is None:
        raise BadToken("invalid signature, no keys found")
    if head.get("alg") != key.algorithm:
        raise BadToken(f"unexpected signature algorithm, expected {key.algorithm}")
    try:
        key.verify(signed, text.encode())
    except BadSignature as error:
        raise BadToken("error in cryptographic primitive") from error
    return claims


def _object(part: str) -> Claims | None:
    data = _decoded(part)
    try:
        found = orjson.loads(data) if data is not None else None
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _decoded(part: str) -> bytes | None:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
