"""Rewind: the objects of a past moment become those of the newest revision."""

import asyncio

import pytest

from mockube.component_base.clock import RealClock, SteppedClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from tests.support.event_loop import WAIT_TIMEOUT, until
from tests.support.server.apiserver import running, running_with_roles
from tests.support.server.control import PATH, causes, control_object
from tests.support.server.definitions import DEFINITIONS, WIDGETS, define, definition
from tests.support.server.definitions import until as until_definition
from tests.support.stores.wrapped import WrappedStore

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def rewind(client, to):
    answer = await client.post(f"{PATH}/rewinds", control_object("Rewind", spec={"to": str(to)}))
    assert answer.status == 201, answer.body
    return answer.body["status"]


async def now(client):
    return (await client.get("/mockube/at/now")).body["revision"]


async def put(client, name, value):
    body = {"metadata": {"name": name}, "data": {"k": value}}
    if (answer := await client.put(f"{CONFIG_MAPS}/{name}", body)).status == 404:
        answer = await client.post(CONFIG_MAPS, body)
    assert answer.status in (200, 201), answer.body
    return answer.body["metadata"]["uid"]


async def values(client):
    items = (await client.get(CONFIG_MAPS)).body["items"]
    return {item["metadata"]["name"]: item["data"]["k"] for item in items}


async def test_objects_go_back_and_watches_see_each_change(client):
    for name in ("same", "changed", "deleted", "replaced"):
        await put(client, name, "1")
    moment = await now(client)
    old_uid = (await client.get(f"{CONFIG_MAPS}/replaced")).body["metadata"]["uid"]
    for name in ("deleted", "replaced"):
        await client.delete(f"{CONFIG_MAPS}/{name}")
    for name in ("changed", "replaced", "created"):
        await put(client, name, "2")
    before = await now(client)
    async with client.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={before}") as events:
        done = await rewind(client, moment)
        seen = [await anext(events) for _ in range(5)]
    assert await values(client) == dict.fromkeys(("same", "changed", "deleted", "replaced"), "1")
    assert (await client.get(f"{CONFIG_MAPS}/replaced")).body["metadata"]["uid"] == old_uid
    expected = {"to": moment, "created": 1, "changed": 1, "deleted": 1, "replaced": 1}
    assert {key: done[key] for key in expected} == expected
    assert (done["previousRevision"], done["revision"]) == (before, before + 2)
    changes = [(event["type"], event["object"]["metadata"]["name"]) for event in seen]
    assert changes[0] == ("DELETED", "replaced")
    assert sorted(changes[1:]) == [
        ("ADDED", "deleted"),
        ("ADDED", "replaced"),
        ("DELETED", "created"),
        ("MODIFIED", "changed"),
    ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == [before + 1, *[before + 2] * 4]


async def test_rewind_to_the_previous_revision_undoes_it(client):
    await put(client, "a", "1")
    moment = await now(client)
    await put(client, "a", "2")
    await put(client, "b", "2")
    done = await rewind(client, moment)
    assert await values(client) == {"a": "1"}
    await rewind(client, done["previousRevision"])
    assert await values(client) == {"a": "2", "b": "2"}


async def test_rewind_to_a_mark_has_its_user_and_its_own_manager_as_author(client):
    await put(client, "a", "1")
    await client.post(f"{PATH}/marks", control_object("Mark", "before"))
    await put(client, "a", "2")
    done = await rewind(client, "before")
    author = client.server.registry.journal.author(done["revision"])
    assert (author.user, author.verb, author.field_manager) == ("admin", "rewind", "mockube-rewind")
    assert await values(client) == {"a": "1"}


async def test_rewind_to_now_changes_nothing(client):
    await put(client, "a", "1")
    revision = await now(client)
    done = await rewind(client, "now")
    assert (done["revision"], done["previousRevision"], done["created"]) == (revision, revision, 0)
    assert await now(client) == revision


async def test_definitions_go_back_with_their_objects(client):
    await define(client, definition())
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert (await client.post(WIDGETS, widget)).status == 201
    moment = await now(client)
    await client.delete(f"{DEFINITIONS}/widgets.example.com")
    await until_definition(client, "widgets.example.com", lambda seen: seen is None)
    assert (await client.get(WIDGETS)).status == 404
    await rewind(client, moment)
    listed = await client.get(WIDGETS)
    assert (listed.status, [item["metadata"]["name"] for item in listed.body["items"]]) == (200, ["w"])
    assert (await client.post(WIDGETS, {**widget, "metadata": {"name": "x"}})).status == 201


async def test_leases_stay_but_those_of_namespaces_that_are_gone(client):
    await client.post(LEASES, {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "then"}})
    moment = await now(client)
    lease = (await client.get(f"{LEASES}/leader")).body
    await client.put(f"{LEASES}/leader", lease | {"spec": {"holderIdentity": "now"}})
    await client.post(NAMESPACES, {"metadata": {"name": "later"}})
    later = LEASES.replace("default", "later")
    await client.post(later, {"metadata": {"name": "l"}, "spec": {}})
    await rewind(client, moment)
    assert (await client.get(f"{LEASES}/leader")).body["spec"]["holderIdentity"] == "now"
    listed = await client.get("/apis/coordination.k8s.io/v1/leases")
    assert {item["metadata"]["namespace"] for item in listed.body["items"]} <= {"default", "kube-system"}
    assert (await client.get(f"{NAMESPACES}/later")).status == 404


async def test_files_of_volumes_and_nodes_stay(client):
    secrets = "/api/v1/namespaces/kube-system/secrets"
    await client.post(NAMESPACES, {"metadata": {"name": "kube-system"}})
    await client.post(secrets, {"metadata": {"name": "mockube-node-a"}, "stringData": {"contents": "then"}})
    await client.post(secrets, {"metadata": {"name": "other"}, "stringData": {"k": "then"}})
    moment = await now(client)
    for name, key in (("mockube-node-a", "contents"), ("other", "k")):
        await client.put(f"{secrets}/{name}", {"metadata": {"name": name}, "stringData": {key: "now"}})
    await client.post(secrets, {"metadata": {"name": "mockube-volume-b"}, "stringData": {"contents": "now"}})
    await rewind(client, moment)
    found = {each["metadata"]["name"]: each["data"] for each in (await client.get(secrets)).body["items"]}
    assert found == {
        "mockube-node-a": {"contents": "bm93"}, "mockube-volume-b": {"contents": "bm93"}, "other": {"k": "dGhlbg=="}
    }  # fmt: skip


async def test_events_that_have_expired_are_there_again():
    clock = SteppedClock()
    async with running(clock=clock) as client:
        events = "/api/v1/namespaces/default/events"
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        await client.post(events, event)
        moment = await now(client)
        async with client.watch(f"{events}?watch=1&resourceVersion={moment}&timeoutSeconds=99999") as seen:
            clock.advance(3700)
            assert (await anext(seen))["type"] == "DELETED"
            await rewind(client, moment)
            assert (await anext(seen))["type"] == "ADDED"
            clock.advance(3000)
            assert (await client.get(f"{events}/e")).status == 200
            clock.advance(700)
            assert (await anext(seen))["type"] == "DELETED"


@pytest.mark.parametrize(
    ("spec", "status", "text"),
    [
        ({"to": "nothing"}, 404, "nothing is no moment"),
        ({"to": "99999999999999999"}, 400, "is in the future"),
        ({"to": "-9999h"}, 410, "is before the history"),
    ],
)
async def test_unknown_moments_change_nothing(client, spec, status, text):
    revision = await now(client)
    answer = await client.post(f"{PATH}/rewinds", control_object("Rewind", spec=spec))
    assert (answer.status, text in answer.body["message"]) == (status, True)
    assert await now(client) == revision


@pytest.mark.parametrize(
    ("spec", "field"), [({}, "spec.to"), ({"to": 5}, "spec.to"), ({"to": ""}, "spec.to"), (None, "spec")]
)
async def test_invalid_rewinds_are_refused_with_causes(client, spec, field):
    fields = {} if spec is None else {"spec": spec}
    answer = await client.post(f"{PATH}/rewinds", control_object("Rewind", **fields))
    assert (answer.status, causes(answer)[0][0]) == (422, field)


async def test_rewind_has_no_dry_run(client):
    answer = await client.post(f"{PATH}/rewinds?dryRun=All", control_object("Rewind", spec={"to": "now"}))
    assert (answer.status, "has no dry run" in answer.body["message"]) == (400, True)


async def test_rewind_needs_its_own_right():
    async with running_with_roles() as client:
        answer = await client.post(
            f"{PATH}/rewinds",
            control_object("Rewind", spec={"to": "now"}),
            Authorization="Bearer alice",
        )
        assert answer.status == 403


class SlowRewrites(MemoryStore):
    """A store whose caller learns later that its keys were replaced."""

    def __init__(self, **options):
        super().__init__(**options)
        self.is_rewritten, self.may_return = asyncio.Event(), asyncio.Event()

    async def rewrite(self, *arguments, **options):
        revision = await super().rewrite(*arguments, **options)
        self.is_rewritten.set()
        await self.may_return.wait()
        return revision


@pytest.mark.parametrize("way", ["rewind", "snapshot"])
async def test_rewind_is_completed_when_its_request_is_cancelled(way):
    store = SlowRewrites(clock=RealClock())
    async with running(kv=store) as client:
        await put(client, "a", "1")
        moment = await now(client)
        snapshot = (await client.get("/mockube/snapshot")).data
        await put(client, "a", "2")
        restored, handlers = asyncio.Event(), []

        async def on_restored():
            restored.set()

        async def note_handler(request, proceed):
            handlers.append(asyncio.current_task())
            return await proceed(request)

        client.server.context.on_restored.append(on_restored)
        client.server.context.hooks.before_endpoint.add(note_handler)
        if way == "rewind":
            sending = client.post(f"{PATH}/rewinds", control_object("Rewind", spec={"to": str(moment)}))
        else:
            sending = client.send("PUT", "/mockube/snapshot?replace=true", snapshot)
        sent = asyncio.create_task(sending)
        async with asyncio.timeout(WAIT_TIMEOUT):
            await store.is_rewritten.wait()
        handlers[-1].cancel()  # as by the deadline of the request, or the end of a client in the process
        await until(handlers[-1].done)
        store.may_return.set()
        async with asyncio.timeout(WAIT_TIMEOUT):
            await restored.wait()
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
        revision = (await store.status()).revision
        author = client.server.registry.journal.author(revision)
        assert (author.user, author.verb) == ("admin", "rewind" if way == "rewind" else "restore")
        assert await values(client) == {"a": "1"}


async def test_rewind_is_durable(tmp_path):
    clock = SteppedClock()
    store = await DurableStore.open(tmp_path, clock=clock)
    async with running(kv=store, clock=clock) as client:
        await put(client, "a", "1")
        moment = await now(client)
        await client.delete(f"{CONFIG_MAPS}/a")
        await put(client, "a", "2")
        done = await rewind(client, moment)
    reopened = await DurableStore.open(tmp_path, clock=clock)
    async with running(kv=reopened, clock=clock) as client:
        assert await values(client) == {"a": "1"}
        journal = client.server.registry.journal
        authors = [journal.author(done["revision"] - back) for back in (0, 1)]
        assert [author.user for author in authors] == ["admin", "admin"]
        answer = await client.get(f"/mockube/at/{done['previousRevision']}{CONFIG_MAPS}/a")
        assert answer.body["data"] == {"k": "2"}


class Copy:
    """A copy of the ConfigMaps that a watch keeps; it fails if the watch has a gap, or something twice."""

    def __init__(self):
        self.objects = {}
        self.versions = []

    async def follow(self, events):
        async for event in events:
            self.take(event["type"], event["object"])

    def take(self, kind, tree):
        metadata = tree["metadata"]
        before = self.objects.get(metadata["name"])
        assert (before is not None) is (kind in ("MODIFIED", "DELETED"))
        if kind == "MODIFIED":
            assert before["metadata"]["uid"] == metadata["uid"]
        self.versions.append(int(metadata["resourceVersion"]))
        if kind == "DELETED":
            del self.objects[metadata["name"]]
        else:
            self.objects[metadata["name"]] = tree


async def write(client, name, numbers, acknowledged):
    """Write and delete an object again and again; note what was acknowledged, by revision."""
    for number in numbers:
        body = {"metadata": {"name": name}, "data": {"k": str(number)}}
        answer = await client.put(f"{CONFIG_MAPS}/{name}", body)
        if answer.status == 404:
            answer = await client.post(CONFIG_MAPS, body)
        if answer.status in (200, 201):
            acknowledged[int(answer.body["metadata"]["resourceVersion"])] = (name, str(number))
        if number % 7 == 0:
            await client.delete(f"{CONFIG_MAPS}/{name}")


async def test_writes_during_rewinds_are_whole_and_watches_exact(client, caplog):
    """With writers, deletions and rewinds at once, a watch is a copy of the store, and what was acknowledged is in the history."""
    names, acknowledged, copy = [f"c{number}" for number in range(8)], {}, Copy()
    for name in names:
        await put(client, name, "start")
    moment = await now(client)
    async with client.watch(f"{CONFIG_MAPS}?watch=1") as events:
        following = asyncio.create_task(copy.follow(events))
        async with asyncio.TaskGroup() as group:
            for first, name in enumerate(names[:4]):
                group.create_task(write(client, name, range(first, 160, 4), acknowledged))
            rewinds = [await rewind(client, moment) for _ in range(5)]
        last = await put(client, "last", "end")
        await until(lambda: following.done() or "last" in copy.objects)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    listed = (await client.get(CONFIG_MAPS)).body["items"]
    assert {name: tree["data"]["k"] for name, tree in copy.objects.items()} == {
        item["metadata"]["name"]: item["data"]["k"] for item in listed
    }
    assert copy.objects["last"]["metadata"]["uid"] == last
    assert copy.versions == sorted(copy.versions)
    for revision, (name, value) in acknowledged.items():
        read = await client.get(f"{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")
        assert {item["metadata"]["name"]: item["data"]["k"] for item in read.body["items"]}[name] == value
    for done in rewinds:
        then = (await client.get(f"/mockube/at/{done['revision']}{CONFIG_MAPS}")).body["items"]
        assert {item["metadata"]["name"]: item["data"]["k"] for item in then} == dict.fromkeys(names, "start")
    await client.server.storage.consistency_check.turn()
    assert "differs from the store" not in caplog.text


async def test_store_that_others_may_use_is_not_rewound():
    """A store that is not embedded stands for an etcd; the past can be read, and the answer names what to use."""
    async with running(kv=WrappedStore(MemoryStore(clock=RealClock()))) as client:
        await put(client, "a", "1")
        moment = await now(client)
        await put(client, "a", "2")
        answer = await client.post(f"{PATH}/rewinds", control_object("Rewind", spec={"to": str(moment)}))
        assert answer.status == 400
        assert answer.body["message"].startswith("the store is an etcd, whose objects other servers have")
        assert await values(client) == {"a": "2"}
        then = (await client.get(f"/mockube/at/{moment}{CONFIG_MAPS}/a")).body
        assert then["data"] == {"k": "1"}
