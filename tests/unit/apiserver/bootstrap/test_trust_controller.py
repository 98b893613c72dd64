"""The ConfigMap extension-apiserver-authentication is updated with the CAs, and restored after changes."""

import asyncio

import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.bootstrap.cluster import ServerProperties, authentication_config_map
from mockube.apiserver.bootstrap.trust_controller import TrustController
from mockube.apiserver.pki.issue import make_authority
from mockube.component_base.clock import RealClock
from tests.support.event_loop import until
from tests.support.server import apiserver

PATH = "/api/v1/namespaces/kube-system/configmaps"
NAME = "extension-apiserver-authentication"
NOW = RealClock().now()


def authority(name):
    return make_authority(name, now=NOW, random=SystemRandom()).certificate


class RunningTrustController:
    def __init__(self, client):
        self.client = client
        self.client_ca = authority("first")
        server = client.server
        self.controller = TrustController(server.registry, server.registry.row, self.required)

    def required(self):
        facts = ServerProperties(
            port=6443,
            service_ranges=("10.0.0.0/16",),
            client_ca=self.client_ca,
            now=NOW.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        return authentication_config_map(facts)

    def stored(self):
        backend = self.client.server.registry
        row = self.client.server.registry.row(("", "v1", "configmaps"))
        return backend.find_cached(row.group_resource, "kube-system", NAME)

    def authorities(self):
        stored = self.stored()
        return "" if stored is None else (stored.tree().get("data") or {}).get("client-ca-file", "")


@pytest.fixture
async def trust():
    async with apiserver.running() as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        trust = RunningTrustController(client)
        task = asyncio.create_task(trust.controller.run())
        trust.controller.invalidate()
        await until(trust.stored)
        yield trust
        task.cancel()


async def test_new_authorities_are_added(trust):
    first, trust.client_ca = trust.client_ca, authority("second")
    trust.controller.invalidate()
    await until(lambda: trust.authorities() == (first + trust.client_ca).decode())


async def test_deleted_config_map_is_recreated(trust):
    uid = trust.stored().tree()["metadata"]["uid"]
    await trust.client.delete(f"{PATH}/{NAME}")
    await until(lambda: trust.stored() is not None and trust.stored().tree()["metadata"]["uid"] != uid)
    assert trust.authorities() == trust.client_ca.decode()


async def test_missing_data_is_restored_and_labels_are_kept(trust):
    tree = trust.stored().tree()
    changed = {**tree, "data": {}, "metadata": {**tree["metadata"], "labels": {"a": "b"}}}
    answer = await trust.client.put(f"{PATH}/{NAME}", changed)
    assert answer.status == 200
    await until(lambda: trust.authorities() == trust.client_ca.decode())
    assert trust.stored().tree()["metadata"]["labels"] == {"a": "b"}
