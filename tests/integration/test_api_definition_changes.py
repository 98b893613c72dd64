"""What becomes of watches and of managers when a definition, or a Scale, says something else."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition, until, version


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def test_definition_change_ends_watches(client):
    await define(client, definition())
    async with client.watch(f"{WIDGETS}?watch=1") as events:
        versions = [version(), version("v2", storage=False)]
        changed = await client.patch(f"{DEFINITIONS}/widgets.{GROUP}", {"spec": {"versions": versions}})
        assert changed.status == 200, changed.body
        assert [event async for event in events] == []


async def test_manager_of_replicas_only_is_kept_across_versions(client):
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


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        pytest.param("PUT", "json", id="an update"),
        pytest.param("PATCH", "merge-patch+json", id="a patch"),
        pytest.param("PATCH", "apply-patch+yaml", id="an apply"),
    ],
)
async def test_unchanged_write_migrates_object_to_storage_version(client, method, kind):
    await define(client, definition(version("v1")))
    sent = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    created = await client.post(WIDGETS, sent)
    assert created.status == 201, created.body
    made = created.body
    path = f"{DEFINITIONS}/widgets.example.com"
    both = [version("v1", storage=False), version("v2")]
    assert (await client.patch(path, {"spec": {"versions": both}})).status == 200
    widget = f"{WIDGETS}/a".replace("/v1/", "/v2/")
    await until(client, "widgets.example.com", lambda tree: "v2" in tree["status"]["storedVersions"])
    before = await client.get(widget)
    assert before.status == 200, before.body
    sent = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"}}
    sent = before.body if method == "PUT" else sent
    headers = {"Content_Type": f"application/{kind}"}
    after = (await client.send(method, f"{widget}?fieldManager=m", sent, **headers)).body
    assert after["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    sent = after if method == "PUT" else sent
    again = (await client.send(method, f"{widget}?fieldManager=m", sent, **headers)).body
    assert again["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    assert (await client.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}})).status == 200
    assert (await client.patch(path, {"spec": {"versions": [version("v2")]}})).status == 200
    assert (await client.get(widget)).status == 200
