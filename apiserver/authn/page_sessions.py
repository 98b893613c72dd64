"""The tokens of the page of `mockube ui`: a one-time token opens it, and is exchanged for the token of a session.

Both are in the memory of the server, as digests. A session ends with the token that it was made with, and with the service account. docs/decisions/0050-page.md has the reasons.
"""

import base64
from collections import Counter
from typing import Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.user import User
from mockube.component_base.clock import Clock

from .authenticators import BadToken, PresentedCredentials, token_digest
from .serviceaccount.tokens import ServiceAccounts

ONE_TIME_SECONDS: Final = 300.0
"""The time within which the page is opened."""
SESSION_SECONDS: Final = 12 * 3600.0
MAX_TOKENS: Final = 100
"""The tokens of each type; for a new one the oldest of the user with most of them ends."""
_PREFIX: Final = "mockube-page-"
_TOKEN_BYTES: Final = 32
_OF_SESSION: Final = "mockube.dev/page-session"
"""The extra of a session's user."""


def is_of_session(user: User) -> bool:
    """Return whether a user was authenticated by the token of a session."""
    return _OF_SESSION in user.extra


class PageToken(NamedTuple):
    token: str
    expires: float
    """When it ends, as a time of the clock."""


class _Entry(NamedTuple):
    """A token that is valid now."""

    until: float
    """When it ends, as monotonic time of the machine."""
    user: User
    authenticated: User
    """The user whose credentials were sent for it, which may have impersonated `user`."""
    end: float | None
    """When these credentials expire, in seconds since 1970 by the cluster's clock; None if that is not known."""


class _Tokens:
    """The tokens of one type that are valid now."""

    def __init__(self, clock: Clock, random: Random, seconds: float) -> None:
        self._clock, self._random, self._seconds = clock, random, seconds
        self._entries: dict[bytes, _Entry] = {}

    def issue(self, user: User, authenticated: User, end: float | None) -> PageToken:
        text = base64.urlsafe_b64encode(self._random.bytes(_TOKEN_BYTES)).decode().rstrip("=")
        token, now, seconds = _PREFIX + text, self._clock.real.monotonic(), self._seconds
        if end is not None:
            seconds = min(seconds, max(end - self._clock.now().timestamp(), 0.0))
        self._entries = {digest: entry for digest, entry in self._entries.items() if entry.until > now}
        if len(self._entries) >= MAX_TOKENS:
            self._evict()
        self._entries[token_digest(token)] = _Entry(now + self._seconds, user, authenticated, end)
        return PageToken(token, self._clock.real.now().timestamp() + seconds)

    def _evict(self) -> None:
        """End the oldest token of the user with most of them, so that nobody ends those of others."""
        names = Counter(entry.authenticated.name for entry in self._entries.values())
        name = names.most_common(1)[0][0]
        del self._entries[
            next(digest for digest, entry in self._entries.items() if entry.authenticated.name == name)
        ]

    def find(self, token: str) -> _Entry | None:
        entry = self._entries.get(token_digest(token))
        if entry is None or entry.until <= self._clock.real.monotonic():
            return None
        has_expired = entry.end is not None and entry.end <= self._clock.now().timestamp()
        return None if has_expired else entry

    def end(self, token: str) -> None:
        self._entries.pop(token_digest(token), None)


class PageSessions:
    """Issues the tokens."""

    def __init__(self, clock: Clock, random: Random | None = None) -> None:
        """`clock` is the cluster's, by which other tokens expire. Those of the page live by the machine's: an advance ends none.

        The randomness is not that of the cluster: whoever has its seed would have the tokens.
        """
        random = random or SystemRandom()
        self._one_time = _Tokens(clock, random, ONE_TIME_SECONDS)
        self._sessions = _Tokens(clock, random, SESSION_SECONDS)

    def issue(self, user: User, authenticated: User | None = None, end: float | None = None) -> PageToken:
        """Return a one-time token of a user.

        `authenticated` is the user whose credentials were sent, if it impersonates `user`; `end` is when they expire.
        """
        return self._one_time.issue(user, authenticated or user, end)

    def exchange(self, token: str) -> tuple[PageToken, User]:
        """End a one-time token, and return that of a session, with its user; raise Unauthorized if it is not valid."""
        entry = self._one_time.find(token)
        self._one_time.end(token)
        if entry is None:
            raise Unauthorized("the token was used already, or has expired: run `mockube ui` again")
        user = replace(entry.user, extra={**entry.user.extra, _OF_SESSION: ("true",)})
        return self._sessions.issue(user, entry.authenticated, entry.end), user

    def end(self, presented: PresentedCredentials) -> None:
        """End the session whose token is presented."""
        self._sessions.end(presented.bearer)

    def find(self, token: str) -> tuple[User, User] | None:
        """Return the user of a session, and the one who has created it; None if it is not valid."""
        entry = self._sessions.find(token)
        return None if entry is None else (entry.user, entry.authenticated)


class SessionAuthenticator:
    """Authenticates requests of the page."""

    def __init__(self, sessions: PageSessions, accounts: ServiceAccounts) -> None:
        self._sessions, self._accounts = sessions, accounts

    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        if _PREFIX not in presented.authorization and not presented.websocket_token.startswith(_PREFIX):
            return None  # before the header is parsed: each request with a token comes here
        token = presented.bearer or presented.websocket_token
        if not token.startswith(_PREFIX):
            return None
        found = self._sessions.find(token)
        if found is None:
            raise Unauthorized("Unauthorized")
        user, creator = found
        try:
            await self._accounts.check_user(creator)
        except BadToken as error:
            raise Unauthorized("Unauthorized") from error
        return user
