"""Who is asked first, and what those may do who show nothing."""

import pytest

from apimachinery.clock import SteppedClock
from apimachinery.status import Unauthorized
from apiserver.authn.bearer import BearerTokens, StaticTokens
from apiserver.authn.certificates import ClientCertificates
from apiserver.authn.chain import ANONYMOUS, Authentication
from apiserver.authn.presented import Presented
from apiserver.rest.call import User

BOB = User(name="bob")
SUBJECT = ((("organizationName", "dev"),), (("organizationName", "ops"),), (("commonName", "alice"),))


def chain(**options):
    bearer = BearerTokens((StaticTokens({"t": BOB}),), audiences=(), clock=SteppedClock())
    return Authentication((ClientCertificates(), bearer), **options)


async def test_a_certificate_names_its_user_and_groups():
    user = await chain().authenticate(Presented("", SUBJECT), "/api")
    assert (user.name, user.groups) == ("alice", ("dev", "ops", "system:authenticated"))


async def test_a_certificate_counts_before_a_token():
    assert (await chain().authenticate(Presented("Bearer t", SUBJECT), "/api")).name == "alice"


async def test_a_certificate_without_a_common_name_says_nothing():
    assert await chain().authenticate(Presented("Bearer t", SUBJECT[:1]), "/api") == BOB


@pytest.mark.parametrize("path", ["/readyz", "/livez/etcd", "/healthz", "/version"])
async def test_everybody_may_ask_for_health_and_version(path):
    assert await chain().authenticate(Presented(), path) == ANONYMOUS
    with pytest.raises(Unauthorized):
        await chain(anonymous=False).authenticate(Presented(), path)


@pytest.mark.parametrize(
    ("authorization", "path"),
    [
        pytest.param("", "/api", id="nothing shown"),
        pytest.param("Bearer x", "/api", id="a wrong token"),
        pytest.param("Bearer x", "/readyz", id="a wrong token, even for what is open"),
        pytest.param("Basic dDp0", "/readyz", id="what nobody understands"),
    ],
)
async def test_the_others_are_turned_away(authorization, path):
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        await chain().authenticate(Presented(authorization), path)
