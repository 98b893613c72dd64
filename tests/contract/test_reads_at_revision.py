"""Get, list and the archive at an old revision return what they returned then, over every store."""

from contextlib import aclosing

import orjson
import pytest

from mockube.apimachinery import status
from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.registry import read
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.delete import delete
from mockube.apiserver.registry.patch import patch
from mockube.apiserver.registry.request_context import Body, RequestContext
from mockube.apiserver.registry.revisions import TOO_OLD_TO_LIST
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.etcd.archive.write import archive
from mockube.etcd.errors import Compacted, FutureRevision
from mockube.etcd.kv import HEAD
from tests.support.stores.archives import ROOT, TAKEN_AT, entries
from tests.support.stores.calls import delete as delete_key
from tests.support.stores.calls import head, put

ADMIN = User(name="admin", groups=("system:masters",))
LABELS = {"labelSelector": ["app=x"]}


@pytest.fixture
async def registry(store):
    environment = ServerEnvironment(trust=Trust(tokens={}), clock=SteppedClock())
    async with ApiServer(store, environment) as server:
        row = server.registry.rows[GroupResource("", "namespaces")]
        body = Body(data=orjson.dumps({"metadata": {"name": "default"}}), media_type="application/json")
        await create(server.registry, RequestContext(verb="create", resource=row, user=ADMIN, body=body))
        yield server.registry


def config_map_request(registry, verb, name="", tree=None, **fields):
    row = registry.rows[GroupResource("", "configmaps")]
    media_type = "application/merge-patch+json" if verb == "patch" else "application/json"
    body = Body(data=b"" if tree is None else orjson.dumps(tree), media_type=media_type)
    return RequestContext(
        verb=verb, resource=row, namespace="default", name=name, user=ADMIN, body=body, **fields
    )


async def write(registry, verb, name, value=""):
    """Create, patch or delete a ConfigMap; return the revision after that."""
    tree = (
        None
        if verb == "delete"
        else {"metadata": {"name": name, "labels": {"app": "x"}}, "data": {"k": value}}
    )
    run = {"create": create, "patch": patch, "delete": delete}[verb]
    await run(registry, config_map_request(registry, verb, "" if verb == "create" else name, tree))
    return await registry.watch_cache.fresh()


async def get(registry, name, revision=HEAD, **fields):
    answer = await read.get(registry, config_map_request(registry, "get", name, revision=revision, **fields))
    return answer.stored.tree()


async def listed(registry, revision=HEAD, **query):
    context = config_map_request(registry, "list", revision=revision, query=query)
    return await read.list_objects(registry, context)


def values(answer):
    return {tree["metadata"]["name"]: tree["data"]["k"] for tree in (each.tree() for each in answer.items)}


async def test_get_returns_the_object_of_the_revision(registry):
    created = await write(registry, "create", "a", "1")
    changed = await write(registry, "patch", "a", "2")
    deleted = await write(registry, "delete", "a")
    again = await write(registry, "create", "a", "3")
    for revision, value in ((created, "1"), (changed, "2"), (deleted - 1, "2"), (again, "3"), (HEAD, "3")):
        tree = await get(registry, "a", revision)
        assert tree["data"] == {"k": value}
        assert tree["metadata"]["resourceVersion"] == str({"1": created, "2": changed, "3": again}[value])
    for revision in (created - 1, deleted):
        with pytest.raises(status.NotFound, match='configmaps "a" not found'):
            await get(registry, "a", revision)


async def test_list_returns_the_objects_of_the_revision(registry):
    expected = {await write(registry, "create", "a", "1"): {"a": "1"}}
    expected[await write(registry, "create", "b", "1")] = {"a": "1", "b": "1"}
    expected[await write(registry, "patch", "a", "2")] = {"a": "2", "b": "1"}
    expected[await write(registry, "delete", "b")] = {"a": "2"}
    for revision, objects in expected.items():
        for query in ({}, LABELS, {"resourceVersion": ["0"]}):
            answer = await listed(registry, revision, **query)
            assert values(answer) == objects
            assert answer.metadata["resourceVersion"] == str(revision)
        exact = {"resourceVersion": [str(revision)], "resourceVersionMatch": ["Exact"]}
        assert values(await listed(registry, **exact)) == objects
        assert values(await listed(registry, max(expected), **exact)) == objects


async def test_pages_continue_at_the_revision_of_the_first(registry):
    for name in "abc":
        revision = await write(registry, "create", name, "1")
    await write(registry, "delete", "b")
    first = await listed(registry, revision, limit=["1"])
    second = await listed(registry, limit=["1"], **{"continue": [first.metadata["continue"]]})
    assert [values(first), values(second)] == [{"a": "1"}, {"b": "1"}]
    assert {each.metadata["resourceVersion"] for each in (first, second)} == {str(revision)}


async def test_compacted_revision_is_expired(registry, store):
    old = await write(registry, "create", "a", "1")
    revision = await write(registry, "patch", "a", "2")
    await store.compact(revision)
    for reading in (get(registry, "a", old), listed(registry, old), listed(registry, old, **LABELS)):
        with pytest.raises(status.Expired) as refused:
            await reading
        assert (refused.value.code, refused.value.message) == (410, TOO_OLD_TO_LIST)
    assert (await get(registry, "a", revision))["data"] == {"k": "2"}
    assert values(await listed(registry, revision)) == {"a": "2"}


async def test_future_revision_is_too_large(registry, store):
    """As kube-apiserver 1.37.2 answers a list at an exact resourceVersion: at once, and without Retry-After."""
    current = await write(registry, "create", "a", "1")
    revision = current + 100
    for reading in (get(registry, "a", revision), listed(registry, revision)):
        with pytest.raises(status.ApiError) as refused:
            await reading
        error = refused.value.status()
        assert (error["code"], error["reason"]) == (504, "Timeout")
        expected = f"Timeout: Too large resource version: {revision}, current: {await head(store)}"
        assert error["message"] == expected
        assert error["details"] == {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        }


# --- the archive


async def archived(store, revision=HEAD):
    async with aclosing(archive(store, ROOT, taken_at=TAKEN_AT, revision=revision)) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_archive_of_an_old_revision_is_that_which_was_taken_then(store):
    taken = {}
    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3")):
        revision = await put(store, ROOT + key, value)
        taken[revision] = await archived(store)
    revision = await delete_key(store, ROOT + b"b")
    taken[revision] = await archived(store)
    for revision, data in taken.items():
        assert await archived(store, revision) == data
    assert len({tuple(entries(data)) for data in taken.values()}) == len(taken)


async def test_archive_of_compacted_or_future_revision_fails(store):
    old = await put(store, ROOT + b"a")
    await store.compact(await put(store, ROOT + b"a"))
    with pytest.raises(Compacted):
        await archived(store, old)
    with pytest.raises(FutureRevision):
        await archived(store, await head(store) + 1)
