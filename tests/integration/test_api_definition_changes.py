"""What becomes of watches and of managers when a definition, or a Scale, says something else."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition, version


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def test_watches_end_when_the_definition_changes(client):
    await define(client, definition())
    async with client.watch(f"{WIDGETS}?watch=1") as events:
        versions = [version(), version("v2", storage=False)]
        changed = await client.patch(f"{DEFINITIONS}/widgets.{GROUP}", {"spec": {"versions": versions}})
        assert changed.status == 200, changed.body
        assert [event async for event in events] == []


async def test_who_managed_nothing_but_the_replicas_of_a_version_without_that_path(client):
    """As a real server: each version says where its replicas are, and what is managed itself stays managed."""
    scales = {
        name: {"scale": {"specReplicasPath": path, "statusReplicasPath": ".status.replicas"}}
        for name, path in (("v1", ".spec.replicas"), ("v2", ".spec.wanted"))
    }
    versions = [
        version("v1", subresources=scales["v1"]),
        version("v2", storage=False, subresources=scales["v2"]),
    ]
    await define(client, definition(*versions))
    path = f"/apis/{GROUP}/v2/namespaces/default/widgets"
    sent = {"apiVersion": f"{GROUP}/v2", "kind": "Widget", "metadata": {"name": "a"}}
    await client.post(f"{path}?fieldManager=maker", sent | {"spec": {"wanted": 1, "replicas": 7}})
    applied = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "spec": {"replicas": 3}}
    await client.patch(f"{WIDGETS}/a?fieldManager=applier&force=true", applied, kind="apply-patch+yaml")
    scaled = await client.patch(f"{WIDGETS}/a/scale?fieldManager=scaler", {"spec": {"replicas": 5}})
    assert scaled.status == 200, scaled.body
    managers = (await client.get(f"{WIDGETS}/a")).body["metadata"]["managedFields"]
    assert [(one["manager"], one["fieldsV1"]) for one in managers] == [
        ("applier", {"f:spec": {}}),
        ("scaler", {"f:spec": {"f:replicas": {}}}),
        ("maker", {"f:spec": {}}),
    ]
