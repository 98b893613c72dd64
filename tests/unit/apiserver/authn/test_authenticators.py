"""Bearer tokens: every token authenticator is called, results are cached for a time, and all refusals are the same."""

import pytest

from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.authn.authenticators import (
    TOKEN_CACHE_SECONDS,
    TOKEN_CACHE_SIZE,
    BadToken,
    BearerTokens,
    KnownToken,
    PresentedCredentials,
)
from mockube.apiserver.authn.token_file import StaticTokens
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock

ALICE, BOB = User(name="alice"), User(name="bob")


class CountingAuthenticator:
    """A token authenticator that accepts tokens with one prefix, and counts its calls."""

    def __init__(self, prefix, user):
        self.prefix, self.user, self.calls = prefix, user, 0
        self.bad = False

    async def authenticate_token(self, token, audiences):
        self.calls += 1
        if not token.startswith(self.prefix):
            return None
        if self.bad:
            raise BadToken(f"{self.prefix} is over")
        return KnownToken(self.user, audiences)


def bearer(*authenticators, clock=None):
    return BearerTokens(authenticators, audiences=("api",), clock=clock or SteppedClock())


@pytest.mark.parametrize(
    ("header", "token"),
    [
        pytest.param("Bearer t", "t", id="usual"),
        pytest.param("bearer t", "t", id="lower case"),
        pytest.param("  Bearer t  ", "t", id="surrounding spaces"),
        pytest.param("Bearer  t", "", id="two spaces, as upstream"),
        pytest.param("Bearer t u", "t", id="trailing text"),
        pytest.param("Bearer\tt", "", id="a tab"),
        pytest.param("Basic dDp0", "", id="another scheme"),
        pytest.param("Bearer", "", id="scheme without token"),
        pytest.param("", "", id="no header"),
    ],
)
def test_bearer_token_is_read_from_header(header, token):
    assert PresentedCredentials(header).bearer == token


async def test_request_without_token_calls_no_authenticator():
    authenticator = CountingAuthenticator("a", ALICE)
    assert await bearer(authenticator).authenticate(PresentedCredentials()) is None
    assert authenticator.calls == 0


async def test_first_reader_that_accepts_token_names_user():
    tokens = bearer(CountingAuthenticator("a", ALICE), CountingAuthenticator("b", BOB))
    assert await tokens.authenticate(PresentedCredentials("Bearer b1")) == BOB


async def test_unknown_bearer_token_is_unauthorized():
    tokens = bearer(CountingAuthenticator("a", ALICE), StaticTokens({"s": BOB}))
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        await tokens.authenticate(PresentedCredentials("Bearer x"))
    with pytest.raises(BadToken, match=r"^invalid bearer token$"):
        await tokens.review("x")


async def test_token_review_reports_every_reason():
    authenticator = CountingAuthenticator("a", ALICE)
    authenticator.bad = True
    with pytest.raises(BadToken, match=r"^\[invalid bearer token, a is over\]$"):
        await bearer(authenticator).review("a1")


async def test_accepted_token_is_cached_for_a_time():
    clock, authenticator = SteppedClock(), CountingAuthenticator("a", ALICE)
    tokens = bearer(authenticator, clock=clock)
    for _ in range(3):
        await tokens.review("a1")
    assert authenticator.calls == 1
    authenticator.bad = True
    clock.advance(TOKEN_CACHE_SECONDS)
    with pytest.raises(BadToken):
        await tokens.review("a1")


async def test_token_cache_is_keyed_by_audience():
    authenticator = CountingAuthenticator("a", ALICE)
    tokens = bearer(authenticator)
    assert (await tokens.review("a1")).audiences == ("api",)
    assert (await tokens.review("a1", ["vault"])).audiences == ("vault",)


async def test_token_cache_is_bounded():
    authenticator = CountingAuthenticator("a", ALICE)
    tokens = bearer(authenticator)
    for number in range(TOKEN_CACHE_SIZE + 1):
        await tokens.review(f"a{number}")
    await tokens.review(f"a{TOKEN_CACHE_SIZE}")
    assert authenticator.calls == TOKEN_CACHE_SIZE + 1
    await tokens.review("a0")
    assert authenticator.calls == TOKEN_CACHE_SIZE + 2
