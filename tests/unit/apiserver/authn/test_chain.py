"""The order of authenticators, and requests without credentials."""

import base64

import pytest

from mockube.apimachinery.status import Unauthorized
from mockube.apiserver.authn.authenticators import (
    SUBPROTOCOL_PREFIX,
    Anonymous,
    Authentication,
    BearerTokens,
    PresentedCredentials,
    token_of_subprotocols,
)
from mockube.apiserver.authn.token_file import StaticTokens
from mockube.apiserver.user import ANONYMOUS, User
from mockube.component_base.clock import SteppedClock

BOB = User(name="bob")


def chain(**options):
    bearer = BearerTokens((StaticTokens({"t": BOB}),), audiences=(), clock=SteppedClock())
    return Authentication((bearer,), **options)


@pytest.mark.parametrize(("path", "is_open"), [("/livez", True), ("/livez/ping", False), ("/api", False)])
async def test_anonymous_is_allowed_for_configured_paths_only(path, is_open):
    limited = chain(anonymous_paths={"/livez"})
    if is_open:
        assert await limited.authenticate(PresentedCredentials(), "get", path) is ANONYMOUS
        return
    with pytest.raises(Unauthorized):
        await limited.authenticate(PresentedCredentials(), "get", path)


async def test_request_without_credentials_is_anonymous():
    for authorization in ("", "Basic dDp0", "Bearer", "Bearer  t", "Token t", "Bearer\tt"):
        assert await chain().authenticate(PresentedCredentials(authorization), "get", "/api") == ANONYMOUS
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        await chain(anonymous=Anonymous.NONE).authenticate(PresentedCredentials(), "get", "/readyz")


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz", "/version", "/version/"])
async def test_always_allow_limits_anonymous_to_health_and_version(path):
    limited = chain(anonymous=Anonymous.LIMITED)
    assert await limited.authenticate(PresentedCredentials(), "get", path) == ANONYMOUS
    for verb, other in (("head", path), ("get", "/api"), ("get", "/livez/etcd"), ("get", "/versions")):
        with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
            await limited.authenticate(PresentedCredentials(), verb, other)


@pytest.mark.parametrize("path", ["/api", "/readyz"])
async def test_invalid_token_is_refused_even_on_open_paths(path):
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        await chain().authenticate(PresentedCredentials("Bearer x"), "get", path)


def subprotocol(token):
    return SUBPROTOCOL_PREFIX + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def test_token_subprotocol_is_read_and_removed():
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
def test_malformed_token_subprotocol_is_unauthorized(offered):
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        token_of_subprotocols(offered)
