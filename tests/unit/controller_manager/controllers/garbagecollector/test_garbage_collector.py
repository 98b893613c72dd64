"""Garbage collection by a manager with a real server: which objects are deleted, and when."""

import contextlib

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.garbagecollector.collector import GARBAGE_COLLECTOR
from tests.support.controllers.running_manager import running_cluster, running_manager
from tests.support.server.apiserver import running
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition
from tests.support.server.definitions import until as until_definition

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
DISCOVERY_SECONDS = 31
KIND = {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}


@pytest.fixture
async def cluster():
    clock = SteppedClock()
    async with running_cluster(clock=clock, runnables=[GARBAGE_COLLECTOR]) as (server, manager):
        yield Scenario(server, manager)


class Scenario:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    async def make(self, name, *owners, collection=MAPS, finalizers=(), blocks=False):
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": blocks,
            }
            for owner in owners
        ]
        metadata = {"name": name, "ownerReferences": references, "finalizers": list(finalizers)}
        answer = await self.server.post(collection, {"metadata": metadata})
        assert answer.status == 201, answer.body
        await self.manager.settle()
        return answer.body

    async def delete(self, name, propagation="Background", collection=MAPS):
        options = {"propagationPolicy": propagation}
        answer = await self.server.delete(f"{collection}/{name}", options)
        assert answer.status in (200, 202), answer.body
        await self.manager.settle()

    async def read(self, name, collection=MAPS):
        return (await self.server.get(f"{collection}/{name}")).body

    async def names(self, *collections):
        lists = [(await self.server.get(one)).body["items"] for one in collections or [MAPS, SECRETS]]
        return sorted(
            one["metadata"]["name"] for items in lists for one in items if one["metadata"]["name"] != "x"
        )


async def test_dependents_are_deleted_with_owner(cluster):
    owner = await cluster.make("owner")
    child = await cluster.make("child", owner)
    await cluster.make("grandchild", child)
    await cluster.make("secret", owner, collection=SECRETS)
    await cluster.make("stranger")
    await cluster.delete("owner")
    assert await cluster.names() == ["stranger"]


async def test_orphaned_dependents_are_kept(cluster):
    owner = await cluster.make("owner")
    await cluster.make("child", owner)
    await cluster.delete("owner", "Orphan")
    assert await cluster.names() == ["child"]
    assert "ownerReferences" not in (await cluster.read("child"))["metadata"]


async def test_foreground_deletion_deletes_owner_last(cluster):
    owner = await cluster.make("owner")
    await cluster.make("held", owner, finalizers=["example.com/held"], blocks=True)
    await cluster.make("child", owner, blocks=True)
    await cluster.delete("owner", "Foreground")
    assert await cluster.names() == ["held", "owner"]
    await cluster.server.patch(f"{MAPS}/held", {"metadata": {"finalizers": None}})
    await cluster.manager.settle()
    assert await cluster.names() == []


async def test_owner_does_not_wait_for_non_blocking_dependents(cluster):
    owner = await cluster.make("owner")
    await cluster.make("held", owner, finalizers=["example.com/held"])
    await cluster.delete("owner", "Foreground")
    assert await cluster.names() == ["held"]


async def test_dependent_with_other_owner_is_kept_without_deleted_owner(cluster):
    one, other = await cluster.make("one"), await cluster.make("other")
    await cluster.make("child", one, other)
    await cluster.delete("one", "Foreground")
    assert await cluster.names() == ["child", "other"]
    (reference,) = (await cluster.read("child"))["metadata"]["ownerReferences"]
    assert reference["name"] == "other"


async def test_circular_owners_are_deleted(cluster):
    one = await cluster.make("one")
    other = await cluster.make("other", one, blocks=True)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}
    owners = [reference | {"blockOwnerDeletion": True}]
    await cluster.server.patch(f"{MAPS}/one", {"metadata": {"ownerReferences": owners}})
    await cluster.manager.settle()
    await cluster.delete("one", "Foreground")
    assert await cluster.names() == []


async def test_dependent_of_missing_owner_is_deleted(cluster):
    await cluster.make("child", {"metadata": {"name": "nobody", "uid": "no-such-uid"}})
    await cluster.manager.settle()
    assert await cluster.names() == []


async def test_recreated_owner_does_not_own_former_dependents(cluster):
    owner = await cluster.make("owner")
    await cluster.delete("owner")
    await cluster.make("owner")
    await cluster.make("child", owner)
    assert await cluster.names() == ["owner"]


async def test_owner_in_other_namespace_does_not_count(cluster):
    await cluster.server.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    owner = await cluster.make("owner", collection="/api/v1/namespaces/other/configmaps")
    await cluster.make("child", owner)
    await cluster.manager.settle()
    assert await cluster.names() == []
    events = (await cluster.server.get("/api/v1/namespaces/default/events")).body["items"]
    (event,) = [one for one in events if one["reason"] == "OwnerRefInvalidNamespace"]
    uid = owner["metadata"]["uid"]
    assert event["message"] == (
        f'ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] does not exist in namespace "default"'
    )


async def test_garbage_from_before_start_is_collected():
    clock = SteppedClock()
    async with running(clock=clock) as server, contextlib.AsyncExitStack() as stack:
        owner = (await server.post(MAPS, {"metadata": {"name": "owner"}})).body
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
        await server.post(MAPS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
        await server.delete(f"{MAPS}/owner")
        manager = await stack.enter_async_context(
            running_manager(server, clock, runnables=[GARBAGE_COLLECTOR])
        )
        scenario = Scenario(server, manager)
        assert await scenario.names() == []


async def test_dependents_of_new_custom_kind_are_deleted(cluster):
    """No time passes here, so the test does not wait for the periodic discovery of new kinds."""
    await define(cluster.server, definition())
    await cluster.manager.settle()
    widget = (await cluster.server.post(WIDGETS, {"metadata": {"name": "owner"}} | KIND)).body
    await cluster.manager.settle()
    reference = KIND | {"name": "owner", "uid": widget["metadata"]["uid"]}
    await cluster.server.post(MAPS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
    await cluster.manager.settle()
    await cluster.delete("owner", collection=WIDGETS)
    assert await cluster.names() == []


@pytest.mark.thorough
async def test_unchanged_objects_cause_no_requests(cluster):
    owner = await cluster.make("owner")
    await cluster.make("child", owner)
    before = len(cluster.manager.transport.writes)
    await cluster.manager.step(300)
    assert len(cluster.manager.transport.writes) == before


@pytest.mark.thorough
async def test_kind_of_deleted_definition_is_not_watched(cluster):
    """As upstream, whose monitors follow discovery; a definition that is created again is watched again."""
    name = f"widgets.{GROUP}"
    for _ in range(2):
        await define(cluster.server, definition())
        await cluster.manager.settle()
        assert "widgets" in watched_plurals(cluster.manager)
        answer = await cluster.server.delete(f"{DEFINITIONS}/{name}")
        assert answer.status == 200, answer.body
        await until_definition(cluster.server, name, lambda tree: tree is None)
        await cluster.manager.step(DISCOVERY_SECONDS)
        await cluster.manager.settle()
        assert "widgets" not in watched_plurals(cluster.manager)


def watched_plurals(manager):
    return {resource.plural for resource in manager.work.informers._informers}
