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
    SessionAuthenticator,
    is_of_session,
)
from mockube.apiserver.authn.serviceaccount.claims import Account, Reference
from mockube.apiserver.user import User
from tests.support.server.service_accounts import ACCOUNT, ServiceAccountTokens

USER = User(name="alice")


@pytest.fixture
def tokens():
    return ServiceAccountTokens()


@pytest.fixture
def clock(tokens):
    return tokens.clock


@pytest.fixture
def sessions(clock):
    return PageSessions(clock, SeededRandom())


@pytest.fixture
def authenticator(sessions, tokens):
    return SessionAuthenticator(sessions, tokens.accounts)


def session_of(sessions, *arguments):
    """Return the token of a session."""
    issued, _ = sessions.exchange(sessions.issue(*arguments).token)
    return issued.token


def bearer(token):
    return PresentedCredentials(f"Bearer {token}")


async def test_session_has_user_of_one_time_token(sessions, authenticator):
    token = session_of(sessions, USER)
    for presented in (bearer(token), PresentedCredentials(websocket_token=token)):
        user = await authenticator.authenticate(presented)
        assert (user.name, is_of_session(user)) == ("alice", True)
    assert not is_of_session(USER)


async def test_one_time_token_is_valid_once_and_for_some_time(sessions, clock):
    token, late = sessions.issue(USER).token, sessions.issue(USER).token
    sessions.exchange(token)
    clock.advance(ONE_TIME_SECONDS)
    for each in (token, late, "other"):
        with pytest.raises(Unauthorized):
            sessions.exchange(each)


async def test_session_expires(sessions, authenticator, clock):
    issued, _ = sessions.exchange(sessions.issue(USER).token)
    assert issued.expires == clock.now().timestamp() + SESSION_SECONDS
    clock.advance(SESSION_SECONDS)
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(bearer(issued.token))


async def test_session_ends_with_the_credentials_of_its_user(sessions, authenticator, clock):
    end = clock.now().timestamp() + 600
    issued, _ = sessions.exchange(sessions.issue(USER, USER, end).token)
    assert issued.expires == end
    clock.advance(599)
    assert await authenticator.authenticate(bearer(issued.token))
    clock.advance(1)
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(bearer(issued.token))


@pytest.mark.parametrize("impersonated", [None, USER])
async def test_session_ends_with_its_service_account(sessions, authenticator, tokens, impersonated):
    account = (await tokens.authenticate(tokens.issue())).user
    token = session_of(sessions, impersonated or account, account)
    assert await authenticator.authenticate(bearer(token))
    tokens.put("serviceaccounts", "ns", "robot", uid="another")
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(bearer(token))


async def test_session_ends_with_the_pod_of_its_token(sessions, authenticator, tokens):
    tokens.put("pods", "ns", "web")
    bound = Account(namespace="ns", account=ACCOUNT.account, pod=Reference("web", "uid-web"))
    token = session_of(sessions, bound.user(""))
    assert await authenticator.authenticate(bearer(token))
    tokens.put("pods", "ns", "web", uid="another")
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(bearer(token))


async def test_session_ends(sessions, authenticator):
    token = session_of(sessions, USER)
    sessions.end(bearer(token))
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(bearer(token))


async def test_other_credentials_are_left_to_other_authenticators(authenticator):
    assert await authenticator.authenticate(PresentedCredentials()) is None
    assert await authenticator.authenticate(bearer("admin")) is None


async def test_number_of_tokens_is_limited(sessions):
    first, *others = (sessions.issue(USER).token for _ in range(MAX_TOKENS + 1))
    with pytest.raises(Unauthorized):
        sessions.exchange(first)
    assert sessions.exchange(others[0])


async def test_tokens_of_one_user_do_not_end_those_of_others(sessions):
    first = sessions.issue(USER).token
    for _ in range(MAX_TOKENS):
        sessions.issue(User(name="bob"))
    assert sessions.exchange(first)
