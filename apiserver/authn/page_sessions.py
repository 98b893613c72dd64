"""The tokens of the page of `mockube ui`: a one-time token opens it, and is exchanged for the token of a session.

Both are in the memory of the server, as digests. docs/decisions/0050-page.md has the reasons.
"""

import base64
from typing import Final, NamedTuple

from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.user import User
from mockube.component_base.clock import Clock

from .authenticators import PresentedCredentials, token_digest

ONE_TIME_SECONDS: Final = 300.0
"""The time within which the page is opened."""
SESSION_SECONDS: Final = 12 * 3600.0
MAX_TOKENS: Final = 100
"""The tokens of each type; the oldest one ends for a new one."""
_PREFIX: Final = "mockube-page-"
_TOKEN_BYTES: Final = 32


class PageToken(NamedTuple):
    token: str
    expires: float
    """When it ends, as a time of the clock."""


class _Tokens:
    """The tokens of one type that are valid now, each with its user."""

    def __init__(self, clock: Clock, random: Random, seconds: float) -> None:
        self._clock, self._random, self._seconds = clock, random, seconds
        self._users: dict[bytes, tuple[float, User]] = {}

    def issue(self, user: User) -> PageToken:
        text = base64.urlsafe_b64encode(self._random.bytes(_TOKEN_BYTES)).decode().rstrip("=")
        token, now = _PREFIX + text, self._clock.monotonic()
        self._users = {digest: entry for digest, entry in self._users.items() if entry[0] > now}
        if len(self._users) >= MAX_TOKENS:
            del self._users[next(iter(self._users))]
        self._users[token_digest(token)] = now + self._seconds, user
        return PageToken(token, self._clock.now().timestamp() + self._seconds)

    def user_of(self, token: str) -> User | None:
        until, user = self._users.get(token_digest(token), (0.0, None))
        return user if until > self._clock.monotonic() else None

    def end(self, token: str) -> None:
        self._users.pop(token_digest(token), None)


class PageSessions:
    """Issues the tokens, and authenticates requests of the page."""

    def __init__(self, clock: Clock, random: Random | None = None) -> None:
        """`clock` is the machine's: an advance of the cluster's clock ends no session.

        The randomness is not that of the cluster: whoever has its seed would have the tokens.
        """
        random = random or SystemRandom()
        self._one_time = _Tokens(clock, random, ONE_TIME_SECONDS)
        self._sessions = _Tokens(clock, random, SESSION_SECONDS)

    def issue(self, user: User) -> PageToken:
        """Return a one-time token of a user."""
        return self._one_time.issue(user)

    def exchange(self, token: str) -> PageToken:
        """End a one-time token, and return that of a session; raise Unauthorized if it is not valid."""
        user = self._one_time.user_of(token)
        self._one_time.end(token)
        if user is None:
            raise Unauthorized("the token was used already, or has expired: run `mockube ui` again")
        return self._sessions.issue(user)

    def end(self, presented: PresentedCredentials) -> None:
        """End the session whose token is presented."""
        self._sessions.end(presented.bearer)

    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        token = presented.bearer or presented.websocket_token
        if not token.startswith(_PREFIX):
            return None
        user = self._sessions.user_of(token)
        if user is None:
            raise Unauthorized("Unauthorized")
        return user
