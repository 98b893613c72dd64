"""Bearer tokens: every reader is called, results are cached for a time, and all refusals are the same."""

import pytest

from mockube.apimachinery.clock import SteppedClock
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

ALICE, BOB = User(name="alice"), User(name="bob")


class Reader:
    """A reader that accepts tokens with one prefix, and counts its calls."""

    def __init__(self, prefix, user):
        self.prefix, self.user, self.asked = prefix, user, 0
        self.bad = False

    async def read(self, token, audiences):
        self.asked += 1
        if not token.startswith(self.prefix):
            return None
        if self.bad:
            raise BadToken(f"{self.prefix} is over")
        return KnownToken(self.user, audiences)


def bearer(*readers, clock=None):
    return BearerTokens(readers, audiences=("api",), clock=clock or SteppedClock())


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


async def test_request_without_token_calls_no_reader():
    reader = Reader("a", ALICE)
    assert await bearer(reader).authenticate(PresentedCredentials()) is None
    assert reader.asked == 0


async def test_first_reader_that_accepts_token_names_user():
    tokens = bearer(Reader("a", ALICE), Reader("b", BOB))
    assert await tokens.authenticate(PresentedCredentials("Bearer b1")) == BOB


async def test_unknown_bearer_token_is_unauthorized():
    tokens = bearer(Reader("a", ALICE), StaticTokens({"s": BOB}))
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        await tokens.authenticate(PresentedCredentials("Bearer x"))
    with pytest.raises(BadToken, match=r"^invalid bearer token$"):
        await tokens.review("x")


async def test_token_review_reports_every_reason():
    reader = Reader("a", ALICE)
    reader.bad = True
    with pytest.raises(BadToken, match=r"^\[invalid bearer token, a is over\]$"):
        await bearer(reader).review("a1")


async def test_accepted_token_is_cached_for_a_time():
    clock, reader = SteppedClock(), Reader("a", ALICE)
    tokens = bearer(reader, clock=clock)
    for _ in range(3):
        await tokens.review("a1")
    assert reader.asked == 1
    reader.bad = True
    clock.advance(TOKEN_CACHE_SECONDS)
    with pytest.raises(BadToken):
        await tokens.review("a1")


async def test_token_cache_is_keyed_by_audience():
    reader = Reader("a", ALICE)
    tokens = bearer(reader)
    assert (await tokens.review("a1")).audiences == ("api",)
    assert (await tokens.review("a1", ["vault"])).audiences == ("vault",)


async def test_token_cache_is_bounded():
    reader = Reader("a", ALICE)
    tokens = bearer(reader)
    for number in range(TOKEN_CACHE_SIZE + 1):
        await tokens.review(f"a{number}")
    await tokens.review(f"a{TOKEN_CACHE_SIZE}")
    assert reader.asked == TOKEN_CACHE_SIZE + 1
    await tokens.review("a0")
    assert reader.asked == TOKEN_CACHE_SIZE + 2
