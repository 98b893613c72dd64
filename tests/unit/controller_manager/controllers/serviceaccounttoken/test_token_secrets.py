"""Token Secrets are filled in, and deleted with their service account."""

import base64

import pytest

from mockube.client.kinds import SECRETS, SERVICE_ACCOUNTS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.serviceaccounttoken.controller import (
    ACCOUNT,
    ACCOUNT_UID,
    TYPE,
    TokenIssuer,
    service_account_tokens,
)
from tests.support.controllers.fake_api_server import FakeApiServer

KEY = Key("default", "t")
ISSUING = TokenIssuer(sign=lambda claims: claims["sub"], authority=b"authority")


def cluster_with_secret(*, account="builder", uid=None, kind=TYPE, data=None):
    server = FakeApiServer(service_account_tokens(ISSUING), SteppedClock())
    server.add(SERVICE_ACCOUNTS, {"metadata": {"name": "builder", "namespace": "default", "uid": "u"}})
    marks = {ACCOUNT: account, **({ACCOUNT_UID: uid} if uid else {})}
    metadata = {"name": "t", "namespace": "default", "annotations": marks}
    server.add(SECRETS, {"metadata": metadata, "type": kind, "data": data or {}})
    return server


def decoded(secret):
    return {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}


def test_token_secret_is_filled_in_with_one_write():
    secrets = cluster_with_secret()
    secrets.reconcile(KEY)
    secret = secrets.get(SECRETS, "t")
    assert decoded(secret) == {
        "ca.crt": "authority",
        "namespace": "default",
        "token": "system:serviceaccount:default:builder",
    }
    assert secret["metadata"]["annotations"] == {ACCOUNT: "builder", ACCOUNT_UID: "u"}
    assert len(secrets.done) == 1
    secrets.reconcile(KEY)
    assert len(secrets.done) == 1


def test_existing_token_data_is_kept_except_ca():
    given = {"ca.crt": "b2xk", "namespace": "eA==", "token": "eQ==", "more": "eg=="}
    secrets = cluster_with_secret(data=given)
    secrets.reconcile(KEY)
    assert decoded(secrets.get(SECRETS, "t")) == {
        "ca.crt": "authority",
        "namespace": "x",
        "token": "y",
        "more": "z",
    }


@pytest.mark.parametrize(
    "of",
    [{"account": "nobody"}, {"uid": "another"}],
    ids=["no account", "an account that had the name"],
)
def test_token_secret_without_account_is_deleted(of):
    secrets = cluster_with_secret(**of)
    secrets.reconcile(KEY)
    assert secrets.all(SECRETS) == []


def test_other_secrets_are_ignored():
    secrets = cluster_with_secret(account="nobody", kind="Opaque")
    secrets.reconcile(KEY)
    assert secrets.done == []


def test_missing_secret_is_removed_from_account():
    secrets = cluster_with_secret()
    secrets.change(SERVICE_ACCOUNTS, "builder", ("secrets",), [{"name": "t"}, {"name": "u"}])
    secrets.remove(SECRETS, "t")
    secrets.reconcile(KEY)
    assert secrets.get(SERVICE_ACCOUNTS, "builder")["secrets"] == [{"name": "u"}]
    assert len(secrets.done) == 1
