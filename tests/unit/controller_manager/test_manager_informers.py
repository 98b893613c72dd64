"""Informers with a real API server: handlers receive each change once and in order."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import CONFIG_MAPS, PODS, SERVICE_ACCOUNTS
from mockube.client.resources import Key, Resource, whole_tree
from tests.support.controllers.informers import RecordedChanges, informers_of
from tests.support.controllers.manager_client import client_of
from tests.support.event_loop import until
from tests.support.server.apiserver import running

METADATA_ONLY = Resource(
    group="",
    version="v1",
    plural="configmaps",
    kind="ConfigMap",
    namespaced=True,
    view=whole_tree,
    metadata_only=True,
)


@pytest.fixture
async def server():
    async with running() as server:
        yield server


@pytest.fixture
async def client(server):
    async with client_of(server.url) as client:
        yield client


def config_map(name, **data):
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def pod(name):
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


async def test_synced_informer_has_existing_objects(client):
    await client.create(CONFIG_MAPS, config_map("a", x="1"))
    async with informers_of(client, CONFIG_MAPS) as informers:
        found = informers.caches.of(CONFIG_MAPS).get("default", "a")
    assert found["data"] == {"x": "1"}
    assert (found["kind"], found["apiVersion"]) == ("ConfigMap", "v1")
    assert "managedFields" not in found["metadata"]


async def test_each_change_is_cached_and_delivered(client):
    async with informers_of(client, CONFIG_MAPS) as informers:
        informer = informers.of(CONFIG_MAPS)
        changes = RecordedChanges(informer)
        created = await client.create(CONFIG_MAPS, config_map("a", x="1"))
        changed = await client.update(CONFIG_MAPS, {**created, "data": {"x": "2"}})
        await informer.wait_for_revision(int(meta.resource_version(changed)))
        assert informer.lister.get("default", "a")["data"] == {"x": "2"}
        await client.delete(CONFIG_MAPS, Key("default", "a"))
        await until(lambda: informer.lister.get("default", "a") is None)
    assert changes.words == ["+a", "~a", "-a"]


async def test_pods_are_cached_as_views(client):
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": "default"}})
    async with informers_of(client, PODS) as informers:
        created = await client.create(PODS, pod("a"))
        await informers.of(PODS).wait_for_revision(int(meta.resource_version(created)))
        (view,) = informers.caches.of(PODS).in_namespace("default")
    assert (view.uid, view.phase) == (meta.uid(created), "Pending")


async def test_index_covers_objects_before_and_after_it(client):
    await client.create(CONFIG_MAPS, config_map("a", colour="red"))
    async with informers_of(client, CONFIG_MAPS) as informers:
        informer = informers.of(CONFIG_MAPS)
        informer.add_index("colour", lambda tree: tree["data"].values())
        created = await client.create(CONFIG_MAPS, config_map("b", colour="red"))
        await informer.wait_for_revision(int(meta.resource_version(created)))
        found = informer.lister.by_index("colour", "red")
    assert [meta.name(tree) for tree in found] == ["a", "b"]


async def test_metadata_informer_caches_metadata_only(client):
    await client.create(CONFIG_MAPS, config_map("a", x="1"))
    async with informers_of(client, METADATA_ONLY) as informers:
        await client.create(CONFIG_MAPS, config_map("b", x="1"))
        lister = informers.caches.of(METADATA_ONLY)
        await until(lambda: len(lister.all()) == 2)
        assert [tree for tree in lister.all() if "data" in tree] == []


async def test_informer_requested_later_runs(client):
    async with informers_of(client, PODS) as informers:
        await client.create(CONFIG_MAPS, config_map("a"))
        informer = informers.of(CONFIG_MAPS)
        await informer.wait_synced()
        assert informer.lister.get("default", "a") is not None


async def test_removed_informer_stops_watching(client):
    async with informers_of(client, CONFIG_MAPS) as informers:
        informer = informers.of(CONFIG_MAPS)
        informers.forget(CONFIG_MAPS)
        await client.create(CONFIG_MAPS, config_map("a"))
        again = informers.of(CONFIG_MAPS)
        await again.wait_synced()
        assert again.lister.get("default", "a") is not None
        assert informer.lister.get("default", "a") is None
