"""The keys of an issuer: fetched when a token needs them, and cached as long as the issuer allows."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import orjson

from mockube.apimachinery import gotext
from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.authn.signatures import BadJsonWebKey, Public, from_jwk, is_signed
from mockube.apiserver.outgoing import CallFailed, OutgoingRequest, RemoteResponse, Send, Tls
from mockube.component_base.clock import Clock

EXPIRY_DELTA: Final = 30.0
"""Keys that expire within these seconds are fetched again for a token that none of them has signed."""
UNVERIFIED: Final = "failed to verify id token signature"


class JsonWebKey(NamedTuple):
    id: str
    public: Public


class SignedToken(NamedTuple):
    """The signed parts of a token, and the signature."""

    key_id: str
    algorithm: str
    text: bytes
    signature: bytes


class KeySet(Protocol):
    async def verify(self, signed: SignedToken, /) -> None:
        """Raise BadToken unless one of the keys has signed the token."""


def read_key_set(body: bytes) -> Sequence[JsonWebKey]:
    """Return the public keys of a JSON Web Key Set, or raise ValueError."""
    tree = orjson.loads(body)
    keys = tree.get("keys") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or not isinstance(keys or [], list):
        raise BadJsonWebKey("json: cannot unmarshal into Go value of type jose.JSONWebKeySet")
    return [key for entry in keys or [] if (key := _key(entry)) is not None]


def _key(tree: Any) -> JsonWebKey | None:
    if not isinstance(tree, dict):
        raise BadJsonWebKey("json: cannot unmarshal into Go value of type jose.rawJSONWebKey")
    public = from_jwk(tree)
    return None if public is None else JsonWebKey(str(tree.get("kid") or ""), public)


def is_verified(keys: Sequence[JsonWebKey], signed: SignedToken) -> bool:
    return any(
        is_signed(signed.algorithm, key.public, signed.text, signed.signature)
        for key in keys
        if not signed.key_id or key.id == signed.key_id
    )


class RemoteKeySet:
    """Keys at a URL. Concurrent requests share one fetch; `on_fetch` is called with the result of each."""

    def __init__(
        self,
        url: str,
        *,
        send: Send,
        tls: Tls,
        clock: Clock,
        on_fetch: Callable[[bytes | None], None] = lambda _: None,
    ) -> None:
        self._url = url
        self._send = send
        self._tls = tls
        self._clock = clock
        self._on_fetch = on_fetch
        self._keys: Sequence[JsonWebKey] = ()
        self._expiry = 0.0
        self._lock = asyncio.Lock()
        self._fetches = 0
        self._problem = ""

    async def verify(self, signed: SignedToken, /) -> None:
        if is_verified(self._keys, signed):
            return
        if self._clock.now().timestamp() + EXPIRY_DELTA <= self._expiry:
            raise BadToken(UNVERIFIED)
        await self._refresh()
        if not is_verified(self._keys, signed):
            raise BadToken(UNVERIFIED)

    async def _refresh(self) -> None:
        before = self._fetches
        async with self._lock:
            if self._fetches == before:
                await self._fetch()
        if self._problem:
            raise BadToken(f"fetching keys {self._problem}")

    async def _fetch(self) -> None:
        self._problem, body = "", None
        try:
            request = OutgoingRequest(url=self._url, tls=self._tls, follows_redirects=True)
            answer = await self._send(request)
            self._problem = self._store_keys(answer)
            body = None if self._problem else answer.body
        except CallFailed as error:
            self._problem = f"oidc: get keys failed {error}"
        self._fetches += 1
        self._on_fetch(body)

    def _store_keys(self, answer: RemoteResponse) -> str:
        """Store the keys of a response; return the error if they are invalid, "" otherwise."""
        body = gotext.decode_utf8(answer.body)
        if answer.code != 200:
            return f"oidc: get keys failed: {answer.status_line} {body}"
        try:
            self._keys = read_key_set(answer.body)
        except ValueError as error:
            return f"oidc: failed to decode keys: {decode_problem(answer, error)} {body}"
        self._expiry = expiry(answer.headers, self._clock.now())
        return ""


class FileKeySet:
    """Keys in a file, which is read again when none of its keys has signed a token."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = path.read_bytes()
        self._keys = read_key_set(self._data)

    async def verify(self, signed: SignedToken, /) -> None:
        if is_verified(self._keys, signed):
            return
        try:
            data = await asyncio.to_thread(self._path.read_bytes)
            if data != self._data:
                self._keys, self._data = read_key_set(data), data
        except (OSError, ValueError) as error:
            raise BadToken(f"fetching keys {error}") from error
        if not is_verified(self._keys, signed):
            raise BadToken(UNVERIFIED)


def decode_problem(answer: RemoteResponse, error: ValueError) -> str:
    """Return upstream's error for a body that could not be decoded."""
    kind = answer.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() == "application/json":
        return f"got Content-Type = application/json, but could not unmarshal as JSON: {error}"
    return f'expected Content-Type = application/json, got "{kind}": {error}'


def expiry(headers: Mapping[str, str], now: datetime) -> float:
    """Return the time until which a shared cache may store a response, in seconds since 1970; now if it has no headers."""
    seconds, directives = now.timestamp(), dict[str, str]()
    for part in headers.get("cache-control", "").lower().split(","):
        name, _, value = part.strip().partition("=")
        directives[name] = value.strip('"')
    if directives.keys() & {"no-store", "no-cache", "private"}:
        return seconds
    for name in ("s-maxage", "max-age"):
        if directives.get(name, "").isdigit():
            return seconds + min(int(directives[name]), 10**9)
    try:
        return max(seconds, parsedate_to_datetime(headers["expires"]).timestamp())
    except (KeyError, ValueError, TypeError, OverflowError):
        return seconds
