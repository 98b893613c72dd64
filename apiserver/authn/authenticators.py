"""Authenticate a request: its credentials, the chain of authenticators, and that of bearer tokens.

Bearer tokens of all types are authenticated by `BearerTokens`: it calls one token authenticator after another, and caches the result
for a short time. Users are cached under the digest of a token, never under the token itself, so that response times
reveal nothing about valid tokens.
"""

import base64
import hashlib
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from mockube.apimachinery import gotext, status
from mockube.apiserver.user import ANONYMOUS, User
from mockube.component_base.clock import Clock

LOG = logging.getLogger(__name__)

TOKEN_CACHE_SECONDS = 10.0
"""The time for which a valid token is cached, as upstream."""
TOKEN_CACHE_SIZE = 4096
SUBPROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
LEGACY_TOKENS, STALE_TOKENS, VALID_TOKENS = "legacy_tokens", "stale_tokens", "valid_tokens"
MANUAL_TOKENS, AUTOMATIC_TOKENS = "legacy_manual_token_uses", "legacy_auto_token_uses"
INVALIDATED_TOKENS = "invalid_legacy_auto_token_uses"
_INVALID = "invalid bearer token"
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")


class PeerCertificates:
    """The certificates that a client has sent. The client has the key of the first one; nothing else is verified."""

    __slots__ = ("digest", "key", "read_chain")

    def __init__(self, read_chain: Callable[[], Sequence[bytes]]) -> None:
        """`read_chain` returns the certificates in DER, at least one, the client's own first."""
        chain = read_chain()
        digests = [hashlib.sha256(certificate).digest() for certificate in chain]
        self.digest = digests[0].hex()
        """SHA-256 of the client's own certificate, in hexadecimal digits."""
        self.key = b"".join(digests)
        """The digests of all certificates."""
        self.read_chain = read_chain


class TokenDetails(NamedTuple):
    """Notes about a valid token: annotations for the audit log, warnings for its sender, and its end."""

    annotations: Mapping[str, str] = {}
    warnings: Sequence[str] = ()
    end: float | None = None
    """When it expires, in seconds since 1970 by the cluster's clock; None if that is not known."""


class PresentedCredentials(Struct, frozen=True):
    authorization: str = ""
    """The Authorization header."""
    certificates: PeerCertificates | None = None
    """The certificates that the client has sent, which are not verified; None if it has sent none."""
    websocket_token: str = ""
    """The bearer token among the subprotocols of a WebSocket."""
    proxied: User | None = None
    """The user in the headers of a front proxy, if the client is one."""
    notes: "list[TokenDetails]" = []
    """Notes about the accepted token."""

    @property
    def bearer(self) -> str:
        """Return the token of an Authorization header, which ends at the first space; "" if there is none."""
        scheme, _, rest = self.authorization.strip().partition(" ")
        return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def token_of_subprotocols(protocols: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the bearer token among the subprotocols of a WebSocket, and the other subprotocols.

    A browser cannot send an Authorization header with a WebSocket. As upstream, a token needs another subprotocol
    beside it, which the server selects in its response. Raise Unauthorized if the token cannot be decoded.
    """
    tokens = [protocol for protocol in protocols if protocol.startswith(SUBPROTOCOL_PREFIX)]
    others = [protocol for protocol in protocols if not protocol.startswith(SUBPROTOCOL_PREFIX)]
    if not tokens:
        return "", others
    encoded = tokens[0].removeprefix(SUBPROTOCOL_PREFIX)
    if len(tokens) > 1 or not _BASE64URL.fullmatch(encoded):
        raise status.Unauthorized("Unauthorized")
    try:
        token = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError as error:
        raise status.Unauthorized("Unauthorized") from error
    if token and not others:
        raise status.Unauthorized("Unauthorized")
    return token, others


def _ignore(_seconds: float) -> None:
    pass


class CredentialCounts:
    """Numbers of credentials, for metrics; durations go to the two functions."""

    def __init__(
        self,
        observe_fetch: Callable[[float], None] = _ignore,
        observe_certificate: Callable[[float], None] = _ignore,
    ) -> None:
        self.tokens: Counter[str] = Counter()
        """Checks of service account tokens, by the names LEGACY_TOKENS and so on."""
        self.fetches: Counter[str] = Counter()
        """Checks of tokens, by `ok` and `error`."""
        self.cache_hits = 0
        """Tokens whose cached check was used."""
        self.active_fetches = 0
        """Tokens that are being checked now."""
        self.observe_fetch = observe_fetch
        """Called with the duration of a check in seconds."""
        self.observe_certificate = observe_certificate
        """Called with the remaining lifetime of a request's certificate in seconds."""


ANONYMOUS_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
"""The paths that upstream's role system:public-info-viewer allows to get."""


class Anonymous(Enum):
    """The requests that may be anonymous."""

    NONE = "none"
    LIMITED = "limited"
    """Only requests to get a path of `ANONYMOUS_PATHS`."""
    ALL = "all"
    """All requests; the authorizer decides."""


class Authenticator(Protocol):
    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        """Return the user, or None if there are no credentials of this type; raise Unauthorized if they are wrong."""


class Authentication:
    """Authenticates requests."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        *,
        anonymous: Anonymous = Anonymous.ALL,
        anonymous_paths: Collection[str] = (),
    ) -> None:
        self._authenticators = authenticators
        self._anonymous = anonymous
        self._anonymous_paths = anonymous_paths

    async def authenticate(self, presented: PresentedCredentials, verb: str, path: str) -> User:
        """Return the user, or raise Unauthorized.

        As upstream, an Authorization header that no authenticator reads is ignored.
        """
        refusals: list[status.Unauthorized] = []
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(presented)
            except status.Unauthorized as error:
                refusals.append(error)  # another credential of the same request may be valid
                continue
            if user is not None:
                return user
        if refusals:
            _log_refusals(refusals)
            raise refusals[0]
        if self._anonymous_paths and path not in self._anonymous_paths:
            raise status.Unauthorized("Unauthorized")
        if self._anonymous is Anonymous.ALL:
            return ANONYMOUS
        if self._anonymous is Anonymous.LIMITED and verb == "get" and path in ANONYMOUS_PATHS:
            return ANONYMOUS
        raise status.Unauthorized("Unauthorized")


def _log_refusals(refusals: Sequence[status.Unauthorized]) -> None:
    problems = [str(refusal.__cause__ or refusal) for refusal in refusals]
    problem = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    LOG.error('"Unable to authenticate the request" err=%s', gotext.quote(problem))


class BadToken(Exception):
    """The token is of the authenticator's type, and it is not valid."""


class KnownToken(Struct, frozen=True):
    """The user of a token, and those of the requested audiences for which it is valid."""

    user: User
    audiences: Sequence[str]
    notes: TokenDetails | None = None


class TokenAuthenticator(Protocol):
    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> KnownToken | None:
        """Return the user of a token; None if it is not of this authenticator's type; raise BadToken if it is not valid."""


class BearerTokens:
    """Authenticates bearer tokens. `audiences` are the server's own, one of which a token must have."""

    def __init__(
        self,
        authenticators: Sequence[TokenAuthenticator],
        *,
        audiences: Sequence[str],
        clock: Clock,
        counts: CredentialCounts | None = None,
    ) -> None:
        self._counts = counts or CredentialCounts()
        self._authenticators = authenticators
        self._audiences = tuple(audiences)
        self._clock = clock
        self._cache: dict[tuple[bytes, tuple[str, ...]], tuple[float, KnownToken]] = {}

    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        token = presented.bearer or presented.websocket_token
        if not token:
            return None
        try:
            review = await self.review(token)
        except BadToken as error:
            raise status.Unauthorized("Unauthorized") from error
        if review.notes is not None:
            presented.notes.append(review.notes)
        return review.user

    async def review(self, token: str, audiences: Sequence[str] = ()) -> KnownToken:
        """Return the user of a token, or raise BadToken with all reasons."""
        target_audiences = tuple(audiences) or self._audiences
        key, now = (token_digest(token), target_audiences), self._clock.monotonic()
        until, review = self._cache.get(key, (0.0, None))
        if review is None or until <= now:
            review = await self._fetch(token, target_audiences, self._clock.real.monotonic())
            self._cache_token(key, now + TOKEN_CACHE_SECONDS, review)
        else:
            self._counts.cache_hits += 1
        return review

    async def _fetch(self, token: str, audiences: Sequence[str], began: float) -> KnownToken:
        counts, result = self._counts, "error"
        counts.active_fetches += 1
        try:
            review = await self._authenticate_token(token, audiences)
            result = "ok"
        except BadToken as error:
            result = "ok" if str(error) == _INVALID else "error"
            raise
        finally:
            counts.active_fetches -= 1
            counts.fetches[result] += 1
            counts.observe_fetch(self._clock.real.monotonic() - began)
        return review

    async def _authenticate_token(self, token: str, audiences: Sequence[str]) -> KnownToken:
        problems = [_INVALID]
        for authenticator in self._authenticators:
            try:
                review = await authenticator.authenticate_token(token, audiences)
            except BadToken as error:
                problems.append(str(error))
                continue
            if review is not None:
                return review
        raise BadToken(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    def _cache_token(self, key: tuple[bytes, tuple[str, ...]], until: float, review: KnownToken) -> None:
        """Cache the user of a token; the oldest entry is evicted when the cache is full."""
        self._cache.pop(key, None)
        if len(self._cache) >= TOKEN_CACHE_SIZE:
            del self._cache[next(iter(self._cache))]
        self._cache[key] = until, review


def token_digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
