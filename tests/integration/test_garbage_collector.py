"""What is collected, and when, by a manager beside a real server."""

import contextlib

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.controller_manager.controllers.garbagecollector.collector import GARBAGE_COLLECTOR
from tests.support.controllers.running_manager import running_cluster, running_manager
from tests.support.server.apiserver import running
from tests.support.server.definitions import GROUP, WIDGETS, define, definition

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
KIND = {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}


@pytest.fixture
async def cluster():
    clock = SteppedClock()
    async with running_cluster(clock=clock, runnables=[GARBAGE_COLLECTOR]) as (server, manager):
        yield Story(server, manager)


class Story:
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


async def test_dependents_go_with_their_owner(cluster):
    owner = await cluster.make("owner")
    child = await cluster.make("child", owner)
    await cluster.make("grandchild", child)
    await cluster.make("secret", owner, collection=SECRETS)
    await cluster.make("stranger")
    await cluster.delete("owner")
    assert await cluster.names() == ["stranger"]


async def test_orphans_stay(cluster):
    owner = await cluster.make("owner")
    await cluster.make("child", owner)
    await cluster.delete("owner", "Orphan")
    assert await cluster.names() == ["child"]
    assert "ownerReferences" not in (await cluster.read("child"))["metadata"]


async def test_an_owner_deleted_in_the_foreground_goes_last(cluster):
    owner = await cluster.make("owner")
    await cluster.make("held", owner, finalizers=["example.com/held"], blocks=True)
    await cluster.make("child", owner, blocks=True)
    await cluster.delete("owner", "Foreground")
    assert await cluster.names() == ["held", "owner"]
    await cluster.server.patch(f"{MAPS}/held", {"metadata": {"finalizers": None}})
    await cluster.manager.settle()
    assert await cluster.names() == []


async def test_an_owner_does_not_wait_for_those_that_do_not_block_it(cluster):
    owner = await cluster.make("owner")
    await cluster.make("held", owner, finalizers=["example.com/held"])
    await cluster.delete("owner", "Foreground")
    assert await cluster.names() == ["held"]


async def test_what_has_another_owner_stays_and_names_only_that_one(cluster):
    one, other = await cluster.make("one"), await cluster.make("other")
    await cluster.make("child", one, other)
    await cluster.delete("one", "Foreground")
    assert await cluster.names() == ["child", "other"]
    (reference,) = (await cluster.read("child"))["metadata"]["ownerReferences"]
    assert reference["name"] == "other"


async def test_owners_in_a_circle_that_wait_for_each_other(cluster):
    one = await cluster.make("one")
    other = await cluster.make("other", one, blocks=True)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}
    owners = [reference | {"blockOwnerDeletion": True}]
    await cluster.server.patch(f"{MAPS}/one", {"metadata": {"ownerReferences": owners}})
    await cluster.manager.settle()
    await cluster.delete("one", "Foreground")
    assert await cluster.names() == []


async def test_an_owner_that_never_was(cluster):
    await cluster.make("child", {"metadata": {"name": "nobody", "uid": "no-such-uid"}})
    await cluster.manager.settle()
    assert await cluster.names() == []


async def test_an_owner_that_was_made_anew_is_another(cluster):
    owner = await cluster.make("owner")
    await cluster.delete("owner")
    await cluster.make("owner")
    await cluster.make("child", owner)
    assert await cluster.names() == ["owner"]


async def test_an_owner_in_another_namespace(cluster):
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


async def test_what_was_left_while_nobody_watched():
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
        story = Story(server, manager)
        assert await story.names() == []


async def test_dependents_of_a_kind_that_was_just_defined_go_with_it(cluster):
    """No time passes here, so nobody waits until the server is asked for new kinds anyway."""
    await define(cluster.server, definition())
    await cluster.manager.settle()
    widget = (await cluster.server.post(WIDGETS, {"metadata": {"name": "owner"}} | KIND)).body
    await cluster.manager.settle()
    reference = KIND | {"name": "owner", "uid": widget["metadata"]["uid"]}
    await cluster.server.post(MAPS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
    await cluster.manager.settle()
    await cluster.delete("owner", collection=WIDGETS)
    assert await cluster.names() == []


async def test_quiet_when_nothing_happens(cluster):
    owner = await cluster.make("owner")
    await cluster.make("child", owner)
    before = len(cluster.manager.transport.writes)
    await cluster.manager.step(300)
    assert len(cluster.manager.transport.writes) == before
