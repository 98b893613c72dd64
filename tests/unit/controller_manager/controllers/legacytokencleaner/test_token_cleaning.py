"""Unused and expired tokens are deleted, with the writes that kube-controller-manager 1.36.3 made."""

import base64
from datetime import timedelta

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.config.settings import Config, Controllers
from mockube.controller_manager.controllers.bootstrap.controller import BOOTSTRAP_SIGNER, TOKEN_CLEANER
from mockube.controller_manager.controllers.legacytokencleaner.controller import LEGACY_TOKEN_CLEANER
from tests.support.controllers.running_manager import running_cluster, running_manager
from tests.support.server.apiserver import running

SECRETS = "/api/v1/namespaces/{}/secrets"
TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
LAST_USED = "kubernetes.io/legacy-token-last-used"
TOKENS = ("t-auto", "t-used", "t-marked", "t-newmark", "t-badused", "t-badmark")
OPTIONS = Config(controllers=Controllers(legacy_service_account_token_clean_up_period=5.0))


async def make(server, namespace, kind, name, **fields):
    answer = await server.post(
        f"/api/v1/namespaces/{namespace}/{kind}",
        {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields},
    )
    assert answer.status == 201, answer.body


async def namespaces(server, *names):
    for name in names:
        await server.post("/api/v1/namespaces", {"metadata": {"name": name}})


async def old_tokens(server, today):
    await make(server, "default", "serviceaccounts", "old", secrets=[{"name": name} for name in TOKENS])
    labels = {
        "t-used": {LAST_USED: today},
        "t-marked": {INVALID_SINCE: "2020-01-01"},
        "t-newmark": {INVALID_SINCE: today},
        "t-badused": {LAST_USED: "never"},
        "t-badmark": {INVALID_SINCE: "never"},
    }
    for name in (*TOKENS, "t-mine"):
        metadata = {
            "annotations": {"kubernetes.io/service-account.name": "old"},
            "labels": labels.get(name, {}),
        }
        kind = "kubernetes.io/service-account-token"
        await make(server, "default", "secrets", name, metadata=metadata, type=kind)


async def invalid_since_labels(server):
    items = (await server.get(SECRETS.format("default"))).body["items"]
    return {one["metadata"]["name"]: one["metadata"].get("labels", {}).get(INVALID_SINCE) for one in items}


@pytest.mark.parametrize("since", ["2020-01-01", ""], ids=["noted for long", "noted since today"])
async def test_unused_tokens_are_marked_then_deleted(since):
    clock = SteppedClock()
    today = clock.now().date().isoformat()
    async with running(clock=clock) as server:
        await old_tokens(server, today)
        await namespaces(server, "kube-system")
        await make(server, "kube-system", "configmaps", TRACKING, data={"since": since or today})
        before = await invalid_since_labels(server)
        clock.advance(30)
        async with running_manager(
            server, clock, runnables=[LEGACY_TOKEN_CLEANER], config=OPTIONS
        ) as manager:
            await manager.settle()
            after = await invalid_since_labels(server)
    if since:
        before |= {"t-auto": today, "t-badmark": today}
        del before["t-marked"]
    assert after == before


async def test_cluster_info_is_signed_by_valid_tokens():
    clock = SteppedClock()
    async with running_cluster(clock=clock, controllers=[BOOTSTRAP_SIGNER, TOKEN_CLEANER]) as (
        server,
        manager,
    ):
        await namespaces(server, "kube-system", "kube-public")
        data = {"kubeconfig": "a", "jws-kubeconfig-zzzzzz": "gone"}
        await make(server, "kube-public", "configmaps", "cluster-info", data=data)
        end = (clock.now() + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        values = {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-signing": "true",
            "expiration": end,
        }
        encoded = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
        token = "bootstrap-token-abcdef"
        kind = "bootstrap.kubernetes.io/token"
        await make(server, "kube-system", "secrets", token, type=kind, data=encoded)
        await manager.settle()
        signed = await server.get("/api/v1/namespaces/kube-public/configmaps/cluster-info")
        assert signed.body["data"].keys() == {"kubeconfig", "jws-kubeconfig-abcdef"}
        await manager.step(61)
        signed = await server.get("/api/v1/namespaces/kube-public/configmaps/cluster-info")
        assert signed.body["data"].keys() == {"kubeconfig"}
