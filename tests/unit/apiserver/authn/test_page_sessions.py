"""The tokens of the page: how often, how long and how many."""

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.authn.authenticators import PresentedCredentials
from mockube.apiserver.authn.page_sessions import (
    MAX_TOKENS,
    ONE_TIME_SECONDS,
    SESSION_SECONDS,
    PageSessions,
)
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock

USER = User(name="alice")


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def sessions(clock):
    return PageSessions(clock, SeededRandom())


def bearer(token):
    return PresentedCredentials(f"Bearer {token}")


async def test_session_has_user_of_one_time_token(sessions):
    issued = sessions.exchange(sessions.issue(USER).token)
    assert await sessions.authenticate(bearer(issued.token)) is USER
    assert await sessions.authenticate(PresentedCredentials(websocket_token=issued.token)) is USER


async def test_one_time_token_is_valid_once_and_for_some_time(sessions, clock):
    token, late = sessions.issue(USER).token, sessions.issue(USER).token
    sessions.exchange(token)
    clock.advance(ONE_TIME_SECONDS)
    for each in (token, late, "other"):
        with pytest.raises(Unauthorized):
            sessions.exchange(each)


async def test_session_expires(sessions, clock):
    issued = sessions.exchange(sessions.issue(USER).token)
    assert issued.expires == clock.now().timestamp() + SESSION_SECONDS
    clock.advance(SESSION_SECONDS)
    with pytest.raises(Unauthorized):
        await sessions.authenticate(bearer(issued.token))


async def test_session_ends(sessions):
    token = sessions.exchange(sessions.issue(USER).token).token
    sessions.end(bearer(token))
    with pytest.raises(Unauthorized):
        await sessions.authenticate(bearer(token))


async def test_other_credentials_are_left_to_other_authenticators(sessions):
    assert await sessions.authenticate(PresentedCredentials()) is None
    assert await sessions.authenticate(bearer("admin")) is None


async def test_number_of_tokens_is_limited(sessions):
    first, *others = (sessions.issue(USER).token for _ in range(MAX_TOKENS + 1))
    with pytest.raises(Unauthorized):
        sessions.exchange(first)
    assert sessions.exchange(others[0])
