"""Bearer tokens of any type: readers are tried in order, and the result is cached for a short time.

Users are looked up by the digest of a token, never by the token itself, so that response times reveal nothing about
valid tokens.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from mockube.apimachinery import gotext, status
from mockube.apimachinery.clock import Clock
from mockube.apiserver.authn.credentials import CredentialCounts, PresentedCredentials, TokenNotes
from mockube.apiserver.user import User

LOG = logging.getLogger(__name__)

KNOWN_SECONDS = 10.0
"""The time for which a valid token is cached, as upstream."""
MAX_KNOWN = 4096
_UNKNOWN = "invalid bearer token"


class BadToken(Exception):
    """The token is of the reader's type, and it is not valid."""


class KnownToken(Struct, frozen=True):
    """The user of a token, and those of the requested audiences for which it is valid."""

    user: User
    audiences: Sequence[str]
    notes: TokenNotes | None = None


class TokenReader(Protocol):
    async def read(self, token: str, audiences: Sequence[str]) -> KnownToken | None:
        """Return the user of a token; None if it is not of this reader's type; raise BadToken if it is not valid."""


class StaticTokens:
    """Tokens of a file, which are valid for the audiences of the server."""

    def __init__(self, users: Mapping[str, User], audiences: Sequence[str] = ()) -> None:
        self._users = {_digest(token): user for token, user in users.items()}
        self._audiences = audiences

    async def read(self, token: str, audiences: Sequence[str]) -> KnownToken | None:
        user = self._users.get(_digest(token))
        if user is None or not self._audiences:
            return None if user is None else KnownToken(user, audiences)
        shared_audiences = [audience for audience in audiences if audience in self._audiences]
        return KnownToken(user, shared_audiences) if shared_audiences else None


class BearerTokens:
    """Authenticates bearer tokens. `audiences` are the server's own, one of which a token must have."""

    def __init__(
        self,
        readers: Sequence[TokenReader],
        *,
        audiences: Sequence[str],
        clock: Clock,
        counts: CredentialCounts | None = None,
    ) -> None:
        self._counts = counts or CredentialCounts()
        self._readers = readers
        self._audiences = tuple(audiences)
        self._clock = clock
        self._cache: dict[tuple[bytes, tuple[str, ...]], tuple[float, KnownToken]] = {}

    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        token = presented.bearer or presented.socket_token
        if not token:
            return None
        try:
            review = await self.review(token)
        except BadToken as error:
            LOG.error('"Unable to authenticate the request" err=%s', gotext.quote(str(error)))  # noqa: TRY400 - upstream's
            raise status.Unauthorized("Unauthorized") from error
        if review.notes is not None:
            presented.notes.append(review.notes)
        return review.user

    async def review(self, token: str, audiences: Sequence[str] = ()) -> KnownToken:
        """Return the user of a token, or raise BadToken with all reasons."""
        target_audiences = tuple(audiences) or self._audiences
        key, now = (_digest(token), target_audiences), self._clock.monotonic()
        until, review = self._cache.get(key, (0.0, None))
        if review is None or until <= now:
            review = await self._look_at(token, target_audiences, now)
            self._cache_token(key, now + KNOWN_SECONDS, review)
        else:
            self._counts.cache_hits += 1
        return review

    async def _look_at(self, token: str, audiences: Sequence[str], began: float) -> KnownToken:
        counts, result = self._counts, "error"
        counts.looking += 1
        try:
            review = await self._read(token, audiences)
            result = "ok"
        except BadToken as error:
            result = "ok" if str(error) == _UNKNOWN else "error"
            raise
        finally:
            counts.looking -= 1
            counts.fetches[result] += 1
            counts.observe_look(self._clock.monotonic() - began)
        return review

    async def _read(self, token: str, audiences: Sequence[str]) -> KnownToken:
        problems = [_UNKNOWN]
        for reader in self._readers:
            try:
                review = await reader.read(token, audiences)
            except BadToken as error:
                problems.append(str(error))
                continue
            if review is not None:
                return review
        raise BadToken(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    def _cache_token(self, key: tuple[bytes, tuple[str, ...]], until: float, review: KnownToken) -> None:
        """The oldest entry is dropped when there are too many."""
        self._cache.pop(key, None)
        if len(self._cache) >= MAX_KNOWN:
            del self._cache[next(iter(self._cache))]
        self._cache[key] = until, review


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
