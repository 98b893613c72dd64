"""Bootstrap tokens sign cluster-info and are deleted on expiry, as in kube-controller-manager 1.36.3."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from mockube.client.cache.store import Change
from mockube.client.kinds import CONFIG_MAPS, SECRETS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.bootstrap.controller import (
    BOOTSTRAP_SIGNER,
    CLUSTER_INFO,
    TOKEN_CLEANER,
)
from mockube.controller_manager.controllers.bootstrap.tokens import TYPE, remaining_lifetime
from tests.support.controllers.fake_api_server import FakeApiServer

KUBECONFIG = "apiVersion: v1\nkind: Config\nclusters: []\n"
SIGNATURE = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..6noRUKYc6IcJatsCC4tJjBE6Jx8UClLwzsstr66SXaM"
"""By token abcdef of that content."""
CONFIG_MAP = {"metadata": {"name": "cluster-info", "namespace": "kube-public"}}
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def token(name, namespace="kube-system", **data):
    values = {"token-id": name, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"}
    values |= {key.replace("_", "-"): value for key, value in data.items()}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    metadata = {"name": f"bootstrap-token-{name}", "namespace": namespace}
    return {"metadata": metadata, "type": TYPE, "data": encoded}


def cluster_with_secrets(controller, *secrets, data=None):
    server = FakeApiServer(controller, SteppedClock(NOW))
    for secret in secrets:
        server.add(SECRETS, secret)
    if data is not None:
        metadata = {"name": "cluster-info", "namespace": "kube-public"}
        server.add(CONFIG_MAPS, {"metadata": metadata, "data": data})
    return server


def signatures(found):
    data = found.get(CONFIG_MAPS, "cluster-info", "kube-public")["data"]
    return {key: value for key, value in data.items() if key.startswith("jws-")}


def test_each_token_signs_and_stale_signatures_are_removed():
    data = {"kubeconfig": KUBECONFIG, "jws-kubeconfig-zzzzzz": "gone", "other": "kept"}
    cluster = cluster_with_secrets(
        BOOTSTRAP_SIGNER, token("abcdef", expiration="2099-01-01T00:00:00Z"), data=data
    )
    cluster.reconcile(CLUSTER_INFO)
    assert signatures(cluster) == {"jws-kubeconfig-abcdef": SIGNATURE}
    assert cluster.get(CONFIG_MAPS, "cluster-info", "kube-public")["data"]["other"] == "kept"
    cluster.reconcile(CLUSTER_INFO)
    assert len(cluster.done) == 1


@pytest.mark.parametrize(
    "secret",
    [
        token("abcdef", usage_bootstrap_signing="false"),
        token("abcdef", token_id="abcdeg"),
        token("abcdef", token_secret=""),
        token("abcdef", expiration="2020-01-01T00:00:00Z"),
        token("abcdef", expiration="soon"),
        token("abcdefg"),
        token("abcdef", namespace="default"),
        {**token("abcdef"), "type": "Opaque"},
    ],
    ids=["not for this", "another id", "no secret", "ended", "no time", "a long name", "elsewhere", "opaque"],
)
def test_token_without_signing_usage_does_not_sign(secret):
    cluster = cluster_with_secrets(BOOTSTRAP_SIGNER, secret, data={"kubeconfig": KUBECONFIG})
    cluster.reconcile(CLUSTER_INFO)
    assert cluster.done == []


@pytest.mark.parametrize("data", [None, {}, {"other": "x"}], ids=["no ConfigMap", "empty", "no kubeconfig"])
def test_config_map_without_kubeconfig_is_not_signed(data):
    cluster = cluster_with_secrets(BOOTSTRAP_SIGNER, token("abcdef"), data=data)
    cluster.reconcile(CLUSTER_INFO)
    assert cluster.done == []


@pytest.mark.parametrize("end", ["2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "soon"])
def test_expired_token_is_deleted(end):
    cluster = cluster_with_secrets(TOKEN_CLEANER, token("abcdef", expiration=end))
    cluster.reconcile(Key("kube-system", "bootstrap-token-abcdef"))
    assert cluster.all(SECRETS) == []


def test_token_is_requeued_until_its_expiry():
    cluster = cluster_with_secrets(TOKEN_CLEANER, token("abcdef", expiration="2030-01-01T00:01:00Z"))
    key = Key("kube-system", "bootstrap-token-abcdef")
    assert cluster.plan(key).requeue_after == timedelta(minutes=1)


@pytest.mark.parametrize("secret", [token("abcdef"), token("abcdef", namespace="default", expiration="soon")])
def test_other_secrets_are_kept(secret):
    cluster = cluster_with_secrets(TOKEN_CLEANER, secret)
    cluster.reconcile(Key(secret["metadata"]["namespace"], "bootstrap-token-abcdef"))
    assert len(cluster.all(SECRETS)) == 1


def test_invalid_token_data_is_ignored():
    secret = token("abcdef")
    secret["data"]["expiration"] = "/w=="
    assert remaining_lifetime(secret, NOW) == timedelta()


@pytest.mark.parametrize(
    ("controller", "number", "change", "keys"),
    [
        (BOOTSTRAP_SIGNER, 0, Change(None, CONFIG_MAP), [CLUSTER_INFO]),
        (BOOTSTRAP_SIGNER, 0, Change(None, {"metadata": {"name": "x", "namespace": "kube-public"}}), []),
        (BOOTSTRAP_SIGNER, 1, Change(None, token("abcdef")), [CLUSTER_INFO]),
        (BOOTSTRAP_SIGNER, 1, Change(token("abcdef"), None), [CLUSTER_INFO]),
        (BOOTSTRAP_SIGNER, 1, Change(None, {**token("abcdef"), "type": "Opaque"}), []),
        (TOKEN_CLEANER, 0, Change(None, token("abcdef")), [Key("kube-system", "bootstrap-token-abcdef")]),
        (TOKEN_CLEANER, 0, Change(token("abcdef"), None), []),
        (TOKEN_CLEANER, 0, Change(None, token("abcdef", namespace="default")), []),
        (TOKEN_CLEANER, 0, Change(None, {**token("abcdef"), "type": "Opaque"}), []),
    ],
)
def test_only_tokens_and_cluster_info_are_reconciled(controller, number, change, keys):
    assert [*controller.watches[number].keys(None, change)] == keys


def test_absent_token_is_ignored():
    cluster = cluster_with_secrets(TOKEN_CLEANER)
    assert cluster.reconcile(Key("kube-system", "bootstrap-token-abcdef")) == ([], None)
