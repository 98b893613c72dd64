"""Bootstrap tokens: which Secret authenticates as which user, as upstream."""

import base64
from datetime import UTC, datetime

import pytest

from mockube.apiserver.authn.bootstrap_tokens import BootstrapTokens, user_of
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DATA = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
}
USER = User(name="system:bootstrap:abcdef", groups=("system:bootstrappers", "system:authenticated"))


def secret(type_="bootstrap.kubernetes.io/token", metadata=None, **data):
    encoded = {
        name.replace("_", "-"): base64.b64encode(value.encode()).decode()
        for name, value in (DATA | data).items()
    }
    return {"metadata": metadata or {}, "type": type_, "data": encoded}


def test_bootstrap_token_authenticates_as_user():
    assert user_of(secret(), "abcdef", "0123456789abcdef", NOW) == USER


def test_extra_groups_are_sorted_and_need_prefix():
    extra = {"auth-extra-groups": "system:bootstrappers:b,system:bootstrappers:a"}
    user = user_of(secret(**extra), "abcdef", "0123456789abcdef", NOW)
    assert user.groups == (
        "system:bootstrappers",
        "system:bootstrappers:a",
        "system:bootstrappers:b",
        "system:authenticated",
    )


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(secret(**{"token-secret": "0123456789abcdeg"}), id="another secret"),
        pytest.param(secret(**{"token-id": "abcdeg"}), id="another token"),
        pytest.param(secret(**{"usage-bootstrap-authentication": "yes"}), id="other usage"),
        pytest.param(secret(**{"auth-extra-groups": "system:masters"}), id="foreign group"),
        pytest.param(secret(expiration="2030-01-01T00:00:00Z"), id="expired"),
        pytest.param(secret(expiration="tomorrow"), id="no time"),
        pytest.param(secret("Opaque"), id="another type"),
        pytest.param(secret(metadata={"deletionTimestamp": "2029-12-31T00:00:00Z"}), id="deleted"),
        pytest.param(secret() | {"data": {"token-secret": "!"}}, id="no base 64"),
        pytest.param(secret() | {"data": {"token-secret": "é"}}, id="outside ASCII"),
        pytest.param(secret() | {"data": None}, id="empty"),
    ],
)
def test_other_secrets_are_no_bootstrap_tokens(stored):
    assert user_of(stored, "abcdef", "0123456789abcdef", NOW) is None


@pytest.mark.parametrize(
    "token", ["abcdef.0123456789abcdef", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", "x"]
)
async def test_only_well_formed_bootstrap_tokens_are_looked_up(token):
    asked = []

    async def find(*what):
        asked.append(what)
        return secret(expiration="2031-01-01T00:00:00Z")

    tokens = BootstrapTokens(find, audiences=("api",), clock=SteppedClock())
    found = await tokens.authenticate_token(token, ("other", "api"))
    if token == "abcdef.0123456789abcdef":
        assert (found.user, found.audiences) == (USER, ["api"])
        assert asked == [("secrets", "kube-system", "bootstrap-token-abcdef")]
        assert await tokens.authenticate_token(token, ("other",)) is None
    else:
        assert (found, asked) == (None, [])
