"""Users in the headers of a front proxy: which headers and which certificates are accepted."""

from datetime import timedelta

import pytest
from multidict import CIMultiDict

from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.authn.authenticators import PresentedCredentials
from mockube.apiserver.authn.request_headers import FrontProxy, RequestHeaders
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.chains import builder as b
from tests.support.chains.builder import key
from tests.support.chains.clients import client_certificate, peer, verifier

HEADERS = RequestHeaders(
    username=("X-Remote-User", "X-User"),
    uid=("X-Remote-Uid",),
    groups=("X-Remote-Group", "X-Team"),
    extra_prefixes=("X-Remote-Extra-", "X-More-"),
)
PROXY = client_certificate("CN=proxy")

USERS = {
    "nobody": ([("X-Remote-Group", "g")], None),
    "an empty name": ([("X-Remote-User", "")], None),
    "a name": ([("x-remote-user", "ann")], User(name="ann")),
    "the first header that is not empty": (
        [("X-Remote-User", ""), ("X-User", "bob"), ("X-User", "eve")],
        User(name="bob"),
    ),
    "groups of all headers, in the order of the flags": (
        [("X-Team", "t"), ("X-Remote-User", "ann"), ("X-Remote-Group", "g"), ("X-Remote-Group", "")],
        User(name="ann", groups=("g", "t")),
    ),
    "uid": ([("X-Remote-User", "ann"), ("X-Remote-Uid", "1")], User(name="ann", uid="1")),
    "extra, by keys that may be escaped": (
        [
            ("X-Remote-User", "ann"),
            ("X-Remote-Extra-Example.com%2fTeam", "a"),
            ("X-More-Example.com%2FTEAM", "b"),
            ("X-Remote-Extra-bad%zz", "c"),
        ],
        User(name="ann", extra={"example.com/team": ["a", "b"], "bad%zz": ["c"]}),
    ),
}


@pytest.mark.parametrize(("headers", "user"), USERS.values(), ids=USERS)
def test_front_proxy_headers_name_user(headers, user):
    assert HEADERS.user_of(CIMultiDict(headers).items()) == user


def test_user_headers_are_recognised_by_name_and_prefix():
    own = ["X-Remote-User", "x-user", "X-TEAM", "X-Remote-Extra-a", "x-more-"]
    assert [name for name in [*own, "X-Remote-Group-2", "Accept"] if HEADERS.is_own(name)] == own
    assert not RequestHeaders().is_own("X-Remote-User")


async def authenticate(*names, **presented):
    credentials = {"certificates": peer(PROXY), "proxied": User(name="ann"), **presented}
    proxy = FrontProxy(RequestHeaders(allowed_names=names), verifier(SteppedClock(b.NOW)))
    return await proxy.authenticate(PresentedCredentials(**credentials))


async def test_front_proxy_certificate_is_accepted():
    assert await authenticate() == User(name="ann", groups=("system:authenticated",))
    assert await authenticate("other", "proxy") == User(name="ann", groups=("system:authenticated",))
    assert await authenticate(proxied=User(name="ann", groups=("system:unauthenticated",))) == User(
        name="ann", groups=("system:unauthenticated",)
    )


async def test_headers_without_certificate_or_name_are_ignored():
    assert await authenticate(certificates=None) is None
    assert await authenticate(proxied=None) is None


@pytest.mark.parametrize(
    "certificate",
    [
        client_certificate("CN=proxy", signer=key("p256-middle")),
        client_certificate("CN=proxy", not_after=b.NOW - timedelta(seconds=1)),
        client_certificate("CN=proxy", usages=[b.SERVER]),
    ],
    ids=["of another CA", "expired", "of a server"],
)
async def test_other_certificate_is_not_front_proxys(certificate):
    with pytest.raises(Unauthorized):
        await authenticate(certificates=peer(certificate))


async def test_front_proxy_with_disallowed_name_is_unauthorized():
    with pytest.raises(Unauthorized):
        await authenticate("other")
