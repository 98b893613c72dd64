"""Who is asked first, and what those may do who show nothing."""

import base64

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.authn.bearer import BearerTokens, StaticTokens
from mockube.apiserver.authn.certificates import ClientCertificates
from mockube.apiserver.authn.chain import ANONYMOUS, Authentication
from mockube.apiserver.authn.credentials import SUBPROTOCOL_PREFIX, Presented, token_of_subprotocols
from mockube.apiserver.user import User

BOB = User(name="bob")
SUBJECT = ((("organizationName", "dev"),), (("organizationName", "ops"),), (("commonName", "alice"),))


def chain(**options):
    bearer = BearerTokens((StaticTokens({"t": BOB}),), audiences=(), clock=SteppedClock())
    return Authentication((ClientCertificates(SteppedClock()), bearer), **options)


async def test_a_certificate_names_its_user_and_groups():
    user = await chain().authenticate(Presented("", SUBJECT), "get", "/api")
    assert (user.name, user.groups) == ("alice", ("dev", "ops", "system:authenticated"))


async def test_a_certificate_counts_before_a_token():
    assert (await chain().authenticate(Presented("Bearer t", SUBJECT), "get", "/api")).name == "alice"


async def test_a_certificate_without_a_common_name_says_nothing():
    assert await chain().authenticate(Presented("Bearer t", SUBJECT[:1]), "get", "/api") == BOB


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz", "/version", "/version/"])
async def test_everybody_may_get_health_and_version(path):
    assert await chain().authenticate(Presented(), "get", path) == ANONYMOUS
    with pytest.raises(Unauthorized):
        await chain(anonymous=False).authenticate(Presented(), "get", path)


@pytest.mark.parametrize("authorization", ["Basic dDp0", "Bearer", "Bearer  t", "Token t", "Bearer\tt"])
async def test_a_header_that_no_authenticator_reads_counts_as_none(authorization):
    assert await chain().authenticate(Presented(authorization), "get", "/readyz") == ANONYMOUS
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        await chain().authenticate(Presented(authorization), "get", "/api")


@pytest.mark.parametrize(
    ("authorization", "verb", "path"),
    [
        pytest.param("", "get", "/api", id="nothing shown"),
        pytest.param("", "get", "/livez/etcd", id="one check"),
        pytest.param("", "get", "/versions", id="another page that begins alike"),
        pytest.param("", "post", "/version", id="another method"),
        pytest.param("", "head", "/readyz", id="HEAD, as upstream"),
        pytest.param("Bearer x", "get", "/api", id="a wrong token"),
        pytest.param("Bearer x", "get", "/readyz", id="a wrong token, even for what is open"),
    ],
)
async def test_the_others_are_turned_away(authorization, verb, path):
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        await chain().authenticate(Presented(authorization), verb, path)


def expiring(clock, authorization=""):
    """A certificate that expires in a minute."""
    return Presented(authorization, SUBJECT, clock.now().timestamp() + 60)


async def test_a_certificate_that_expires_on_an_open_connection_counts_no_more():
    clock = SteppedClock()
    chain = Authentication((ClientCertificates(clock),))
    shown = expiring(clock)
    clock.advance(60)
    assert (await chain.authenticate(shown, "get", "/api")).name == "alice"
    clock.advance(1)
    for path in ("/api", "/readyz"):
        with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
            await chain.authenticate(shown, "get", path)


async def test_a_token_beside_an_expired_certificate_counts():
    clock = SteppedClock()
    bearer = BearerTokens((StaticTokens({"t": BOB}),), audiences=(), clock=clock)
    shown = expiring(clock, "Bearer t")
    clock.advance(61)
    assert await Authentication((ClientCertificates(clock), bearer)).authenticate(shown, "get", "/api") == BOB


def subprotocol(token):
    return SUBPROTOCOL_PREFIX + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def test_a_token_among_subprotocols_is_found_and_left_out():
    assert token_of_subprotocols([subprotocol("t"), "other"]) == ("t", ["other"])
    assert token_of_subprotocols(["other", "more"]) == ("", ["other", "more"])
    assert token_of_subprotocols([SUBPROTOCOL_PREFIX]) == ("", [])


@pytest.mark.parametrize(
    "offered",
    [
        pytest.param([subprotocol("t")], id="alone"),
        pytest.param([subprotocol("t"), subprotocol("t"), "other"], id="twice"),
        pytest.param([SUBPROTOCOL_PREFIX + "dA==", "other"], id="padded"),
        pytest.param([SUBPROTOCOL_PREFIX + "d", "other"], id="cut off"),
        pytest.param([SUBPROTOCOL_PREFIX + "_w", "other"], id="no utf-8"),
        pytest.param([SUBPROTOCOL_PREFIX + "d A", "other"], id="with a blank"),
    ],
)
def test_what_is_no_token_among_subprotocols_is_refused(offered):
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        token_of_subprotocols(offered)
