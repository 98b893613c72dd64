"""A running server saves and restores snapshots: who may do so, and how clients see a restored store."""

import asyncio

import orjson
import pytest

from mockube.apiserver.bootstrap.required_object import RequiredObject
from mockube.apiserver.request.snapshot_endpoint import BODY_SECONDS, MAX_SNAPSHOT_BYTES, PATH
from mockube.apiserver.storage.store_reflector import SLICE
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.apiserver import running
from tests.support.server.definitions import define
from tests.support.stores.archives import TAKEN_AT, entries, opened, saved

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@pytest.fixture
async def client():
    async with running(clock=SteppedClock()) as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        yield client


def config_map(name, **data):
    return {"metadata": {"name": name}, "data": data}


async def save(client):
    answer = await client.get(PATH)
    assert answer.status == 200, answer.data
    return answer.data


async def restore(client, data, query="?replace=true"):
    return await client.put(PATH + query, data)


async def names(client, path=MAPS):
    return [item["metadata"]["name"] for item in (await client.get(path)).body["items"]]


async def test_snapshot_contains_stored_objects(client):
    await client.post(MAPS, config_map("a", k="v"))
    data = await save(client)
    archive = opened(data)
    assert (archive.header.prefix, archive.header.taken_at) == ("/registry/", "2030-01-01T00:00:00Z")
    keys = [entry.key for entry in archive.entries()]
    assert b"/registry/configmaps/default/a" in keys
    assert entries(data) == entries(await saved(client.server.registry.kv))


async def test_snapshot_of_an_old_revision_is_that_which_was_saved_then(client):
    revision = int((await client.post(MAPS, config_map("a", k="1"))).body["metadata"]["resourceVersion"])
    then = await save(client)
    await client.delete(f"{MAPS}/a")
    past = await client.get(f"{PATH}?resourceVersion={revision}")
    assert past.data == then != await save(client)


async def test_snapshot_of_a_revision_that_cannot_be_read_is_refused_as_a_list(client):
    first = int((await client.post(MAPS, config_map("a"))).body["metadata"]["resourceVersion"])
    last = int((await client.post(MAPS, config_map("b"))).body["metadata"]["resourceVersion"])
    await client.server.registry.kv.compact(last)
    for version, code in ((first, 410), ("x", 400), (last + 100, 504)):
        exact = f"resourceVersion={version}&resourceVersionMatch=Exact"
        snapshot, listed = await client.get(f"{PATH}?{exact}"), await client.get(f"{MAPS}?{exact}")
        assert (snapshot.status, snapshot.body) == (code, listed.body)


async def test_restored_revision_has_the_sender_of_the_snapshot_as_its_author(client):
    data = await save(client)
    await client.post(MAPS, config_map("a"))
    answer = await client.put(f"{PATH}?replace=true", data, Audit_ID="restore-1", User_Agent="tool/v1")
    author = client.server.registry.journal.author(answer.body["revision"])
    assert (author.user, author.agent, author.verb, author.audit_id) == (
        "admin",
        "tool/v1",
        "restore",
        "restore-1",
    )


async def test_author_of_a_restore_outlives_the_server(tmp_path):
    clock = SteppedClock()
    store = await DurableStore.open(tmp_path, clock=clock)
    async with running(kv=store, clock=clock) as client:
        data = await save(client)
        await client.post(MAPS, config_map("a"))
        revision = (await client.put(f"{PATH}?replace=true", data)).body["revision"]
    reopened = await DurableStore.open(tmp_path, clock=clock)
    async with running(kv=reopened, clock=clock) as client:
        author = client.server.registry.journal.author(revision)
        assert (author.user, author.verb) == ("admin", "restore")


async def test_restore_that_changes_nothing_names_no_author_for_an_old_revision(client):
    journal, store = client.server.registry.journal, client.server.registry.kv
    data = await save(client)
    lease = await store.grant(60)
    await store.put(
        Put(key=b"/elsewhere", value=b"", lease=lease.id)
    )  # as an expiry of keys, it has no author
    revision = (await store.status()).revision
    answer = await restore(client, data)
    assert (answer.status, answer.body["revision"], journal.author(revision)) == (200, revision, None)


async def test_restore_replaces_all_objects(client):
    await client.post(MAPS, config_map("stays", k="1"))
    await client.post(MAPS, config_map("changes", k="1"))
    data = await save(client)
    before = (await client.get(f"{MAPS}/stays")).body
    await client.post(MAPS, config_map("new"))
    await client.put(f"{MAPS}/changes", config_map("changes", k="2"))
    newest = int((await client.get(f"{MAPS}/changes")).body["metadata"]["resourceVersion"])
    answer = await restore(client, data)
    assert (answer.status, answer.body["objects"]) == (200, opened(data).count)
    assert await names(client) == ["changes", "stays"]
    changed = (await client.get(f"{MAPS}/changes")).body
    assert changed["data"] == {"k": "1"}
    assert int(changed["metadata"]["resourceVersion"]) > newest
    assert (await client.get(f"{MAPS}/stays")).body == before


async def test_watch_sees_restore_at_one_resource_version(client):
    await client.post(MAPS, config_map("a", k="1"))
    data = await save(client)
    await client.put(f"{MAPS}/a", config_map("a", k="2"))
    await client.post(MAPS, config_map("b"))
    version = (await client.get(MAPS)).body["metadata"]["resourceVersion"]
    async with client.watch(f"{MAPS}?watch=1&resourceVersion={version}") as events:
        await restore(client, data)
        seen = [await anext(events) for _ in range(2)]
    assert sorted((event["type"], event["object"]["metadata"]["name"]) for event in seen) == [
        ("DELETED", "b"),
        ("MODIFIED", "a"),
    ]
    assert len({event["object"]["metadata"]["resourceVersion"] for event in seen}) == 1


async def test_large_restore_is_listed_atomically_and_watched_in_order(client):
    many = MemoryStore(clock=SteppedClock())
    expected = [f"m{number:04}" for number in range(3 * SLICE)]
    for name in expected:
        metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": TAKEN_AT}
        value = orjson.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})
        await many.put(Put(key=f"/registry/configmaps/default/{name}".encode(), value=value))
    watch_cache, revisions, lists = client.server.registry.watch_cache, [], []
    version = (await client.get(MAPS)).body["metadata"]["resourceVersion"]
    async with client.watch(f"{MAPS}?watch=1&resourceVersion={version}") as events:
        restoring = asyncio.create_task(restore(client, await saved(many)))
        while not restoring.done():
            revisions.append(watch_cache.revision)
            for query in ("", "?resourceVersion=0", f"?resourceVersion={version}", "?labelSelector=!a"):
                listed = (await client.get(MAPS + query)).body["items"]
                lists.append([item["metadata"]["name"] for item in listed])
        assert (await restoring).status == 200
        seen = [(await anext(events))["object"]["metadata"]["name"] for _ in expected]
    assert len(set(revisions) | {watch_cache.revision}) == 2
    assert [one for one in lists if one not in ([], expected)] == []
    assert seen == expected == await names(client)


async def test_update_based_on_state_before_restore_conflicts(client):
    await client.post(MAPS, config_map("a", k="1"))
    data = await save(client)
    await client.put(f"{MAPS}/a", config_map("a", k="2"))
    read = (await client.get(f"{MAPS}/a")).body
    await restore(client, data)
    assert (await client.put(f"{MAPS}/a", read)).status == 409


async def test_process_leases_are_not_restored(client):
    await client.post(LEASES, {"metadata": {"name": "gone"}})
    data = await save(client)
    await client.delete(f"{LEASES}/gone")
    await client.post(LEASES, {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "me"}})
    await restore(client, data)
    assert await names(client, LEASES) == ["leader"]


async def test_restored_definitions_are_served_and_removed_ones_not(client):
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    without = await save(client)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await define(client, definition)
    created = await client.post(
        "/apis/example.com/v1/widgets",
        {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}},
    )
    assert created.status == 201
    with_widgets = await save(client)
    await restore(client, without)
    assert await names(client, definitions) == []
    await restore(client, with_widgets)
    assert await names(client, "/apis/example.com/v1/widgets") == ["w"]


async def test_restore_without_replace_refuses_non_empty_store(client):
    await client.post(MAPS, config_map("a"))
    answer = await restore(client, await save(client), "")
    assert answer.status == 409
    assert "objects, which would be lost" in answer.body["message"]


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        pytest.param(lambda data: data[:-20], "a.gz is truncated", id="cut off"),
        pytest.param(
            lambda _: b"apiVersion: v1", "a.gz is not a mockube snapshot, or is damaged", id="another file"
        ),
        pytest.param(lambda _: b"", "a.gz is not a mockube snapshot", id="empty"),
    ],
)
async def test_damaged_snapshot_changes_nothing(client, harm, message):
    await client.post(MAPS, config_map("a"))
    data = await save(client)
    await client.post(MAPS, config_map("b"))
    answer = await restore(client, harm(data), "?replace=true&name=a.gz")
    assert (answer.status, answer.body["message"]) == (400, message)
    assert await names(client) == ["a", "b"]


async def test_snapshot_endpoint_refuses_other_methods(client):
    assert (await client.post(PATH, {})).status == 405


async def test_system_objects_are_recreated_after_restore(client):
    empty = MemoryStore(clock=SteppedClock())
    wanted = []

    async def ensure_system_objects():
        wanted.append(RequiredObject(resource=("", "v1", "namespaces"), name="default"))

    client.server.context.on_restored.append(ensure_system_objects)
    assert (await restore(client, await saved(empty))).status == 200
    assert len(wanted) == 1


async def test_endless_upload_is_not_awaited(client):
    taken = asyncio.Event()

    async def endless():
        yield b"some"
        taken.set()
        await asyncio.Event().wait()

    sending = asyncio.create_task(restore(client, endless()))
    await taken.wait()
    handler = client.server.handler
    await until(lambda: handler.in_flight.count("create"))
    while not sending.done():
        client.server.registry.clock.advance(BODY_SECONDS)
        await yield_to_loop(20)
    answer = await sending
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")


async def test_oversized_snapshot_is_not_read(client):
    host, port = client.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"PUT {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\nContent-Length: {MAX_SNAPSHOT_BYTES + 1}\r\n\r\n"
    writer.write(head.encode())
    assert (await reader.readline()) == b"HTTP/1.1 413 Request Entity Too Large\r\n"
    writer.transport.abort()
