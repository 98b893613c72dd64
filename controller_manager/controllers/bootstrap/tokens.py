"""Bootstrap tokens in Secrets of kube-system, and signatures with them."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import base64url
from mockube.apimachinery.timestamps import TimestampError, parse_time
from mockube.apimachinery.tree import ReadOnlyTree

TYPE: Final = "bootstrap.kubernetes.io/token"
NAMESPACE: Final = "kube-system"
BY_TYPE: Final = "bootstrapTokens"
_NAME: Final = re.compile(r"bootstrap-token-([a-z0-9]{6})")
_EXPIRED: Final = timedelta()


def is_token(secret: ReadOnlyTree) -> bool:
    return secret.get("type") == TYPE and meta.namespace(secret) == NAMESPACE


def by_type(secret: Any) -> Iterator[str]:
    """Index the Secrets that contain tokens."""
    if is_token(secret):
        yield TYPE


def remaining_lifetime(secret: ReadOnlyTree, now: datetime) -> timedelta | None:
    """Return how long a token is valid, at least 0; None for ever. An invalid expiration counts as past."""
    end = _value(secret, "expiration")
    if not end:
        return None
    try:
        return max(parse_time(end.decode()) - now, _EXPIRED)
    except (TimestampError, UnicodeDecodeError):
        return _EXPIRED


def signing_key(secret: ReadOnlyTree, now: datetime) -> tuple[str, bytes] | None:
    """Return the id and the secret of a token; None if it must not be used for signing."""
    name = _NAME.fullmatch(meta.name(secret))
    key = _value(secret, "token-secret")
    if name is None or _value(secret, "token-id") != name[1].encode() or not key:
        return None
    if remaining_lifetime(secret, now) == _EXPIRED or _value(secret, "usage-bootstrap-signing") != b"true":
        return None
    return name[1], key


def detached_signature(content: str, token_id: str, key: bytes) -> str:
    """Return a JWS with HMAC and SHA-256, without the content."""
    header = base64url(orjson.dumps({"alg": "HS256", "kid": token_id}))
    signed = f"{header}.{base64url(content.encode())}"
    signature = hmac.new(key, signed.encode(), hashlib.sha256).digest()
    return f"{header}..{base64url(signature)}"


def _value(secret: ReadOnlyTree, name: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(name) or "")
    except ValueError:
        return b""
