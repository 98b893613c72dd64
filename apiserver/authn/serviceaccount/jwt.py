"""JSON Web Tokens in the compact format: three base64 parts, separated by dots.

Only the algorithm of the key is accepted. No claim is used before the signature has been verified, except the issuer,
which selects the authenticator.
"""

import base64
import json  # noqa: TID251 - orjson keeps the last of two equal keys and does not report the first
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery.gotext import base64url
from mockube.apiserver.authn.authenticators import BadToken

from .keys import BadSignature, ServiceAccountKeys

Claims: TypeAlias = Mapping[str, Any]

_NOT_VERIFIED: Final = "go-jose/go-jose: error in cryptographic primitive"


def sign(keys: ServiceAccountKeys, claims: Claims) -> str:
    header = {"alg": keys.signer.algorithm, "kid": keys.signer.id}
    text = f"{base64url(orjson.dumps(header))}.{base64url(orjson.dumps(claims))}"
    return f"{text}.{base64url(keys.sign(text.encode()))}"


def issuer(token: str) -> str:
    """Return the issuer in a token, which is not verified; "" if it is not a JSON Web Token."""
    parts = token.split(".")
    claims = _decode_object(parts[1]) if len(parts) == 3 else None
    claim = claims.get("iss") if claims is not None else None
    return claim if isinstance(claim, str) else ""


def verify(keys: ServiceAccountKeys, token: str) -> Claims | None:
    """Return the claims of a token that one of the keys has signed; None if it does not have this format."""
    text, _, signature = token.rpartition(".")
    header, _, payload = text.partition(".")
    head, signed = _decode_object(header), _decode(signature)
    if head is None or (signed is None and not _is_base64(signature)) or _duplicate_key(header):
        return None
    key = keys.by_id.get(str(head.get("kid", "")))
    if key is None:
        raise BadToken("invalid signature, no keys found")
    # `crit` and `b64` name extensions, none of which is supported.
    if signed is None or head.get("alg") != key.algorithm or "crit" in head or head.get("b64") is False:
        raise BadToken(_NOT_VERIFIED)
    try:
        key.verify(signed, text.encode())
    except BadSignature as error:
        raise BadToken(_NOT_VERIFIED) from error
    claims = _decode_object(payload)
    if claims is None:
        return None
    if name := _duplicate_key(payload):
        raise BadToken(f"json: duplicate key '{name}' in object")
    return claims


def _decode_object(part: str) -> Claims | None:
    data = _decode(part)
    try:
        tree = orjson.loads(data) if data is not None else None
    except orjson.JSONDecodeError:
        return None
    return tree if isinstance(tree, dict) else None


def _duplicate_key(part: str) -> str:
    """Return a duplicate key of an object in the part, which parsers could read differently; "" if there is none."""
    duplicate_name = ""

    def find_duplicate(pairs: list[tuple[str, Any]]) -> None:
        nonlocal duplicate_name
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                duplicate_name = duplicate_name or name
            seen.add(name)

    try:
        json.loads(_decode(part) or b"null", object_pairs_hook=find_duplicate)
    except RecursionError:
        raise BadToken("json: exceeded max depth") from None
    return duplicate_name


def _is_base64(part: str) -> bool:
    """Return whether Go decodes a part, even if it is not the canonical text of `encode`."""
    try:
        base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return False
    return True


def _decode(part: str) -> bytes | None:
    """Decode a part; None unless it is the canonical text of `encode`, so that each token has only one text."""
    try:
        data = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None
    return data if base64url(data) == part else None
