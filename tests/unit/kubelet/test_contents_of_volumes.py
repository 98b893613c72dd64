"""The contents of volumes as Secrets: when they are written, for whom, and what others do to them. Without a server."""

import asyncio
from base64 import b64encode
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import AlreadyExists, InternalError, NotFound
from mockube.client import kinds
from mockube.client.resources import Key
from mockube.container_runtime.volume_contents import EncodedContents
from mockube.kubelet.kept_contents import KeptContents
from tests.support.controllers.informers import fill
from tests.support.controllers.scheduler_parts import SchedulerContext
from tests.support.event_loop import yield_to_loop

NODE, POD, VOLUME = ("node", "n"), ("pod", "uid-p", "cache"), ("volume", "uid-v", "v")
KEYS = {
    NODE: Key("kube-system", "mockube-node-n"),
    POD: Key("kube-system", "mockube-pod-uid-p-cache"),
    VOLUME: Key("kube-system", "mockube-volume-uid-v"),
}
TYPE = "mockube.dev/volume-contents"
CLAIM = {"namespace": "default", "name": "data", "uid": "uid-c"}


def meta(name, uid="", **fields):
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": "1"}, **fields}


def persistent(uid="uid-v", **spec):
    return meta("v", uid, spec=spec)


def pod(uid="uid-p"):
    tree = meta(f"web-{uid}", uid, spec={"containers": []}, status={})
    tree["metadata"]["namespace"] = "default"
    return tree


def secret(volume, version="1", type_=TYPE, data=b"kept", annotation=None):
    key = KEYS.get(volume, Key("kube-system", "other"))
    return {
        "metadata": {
            "namespace": key.namespace,
            "name": key.name,
            "resourceVersion": version,
            "annotations": {"mockube.dev/volume": annotation or "/".join(volume)},
        },
        "type": type_,
        "data": {"contents": b64encode(data).decode()},
    }


class Server:
    """Has Secrets, and records writes."""

    def __init__(self):
        self.secrets, self.writes, self.error, self.revision = {}, [], None, 100
        self.on_write = lambda _secret: None

    def with_timeout(self, _seconds):
        return self

    async def get(self, _resource, key):
        if self.error:
            raise self.error
        if key not in self.secrets:
            raise NotFound("gone")
        return self.secrets[key]

    async def create(self, _resource, body):
        return self._write("create", body, exists=False)

    async def update(self, _resource, body):
        return self._write("update", body, exists=True)

    async def delete(self, _resource, key):
        self.writes.append(("delete", key.name))
        del self.secrets[key]

    def _write(self, verb, body, *, exists):
        self.writes.append((verb, body["metadata"]["name"]))
        if self.error:
            raise self.error
        if (Key.of(body) in self.secrets) is not exists:
            raise NotFound("gone") if exists else AlreadyExists("there")
        self.revision += 1
        written = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.revision)}}
        self.secrets[Key.of(body)] = written
        self.on_write(written)
        return written


class Source:
    """Has one present state of every volume."""

    def __init__(self):
        self.contents = EncodedContents(b"new", ())
        self.replaced, self.dropped = [], []

    async def encoded(self, _volume):
        return self.contents

    def replace(self, volume, data):
        self.replaced.append((volume, data))

    def drop(self, volume):
        self.dropped.append(volume)


class Large(bytes):
    """As `size` bytes, without the memory."""

    def __new__(cls, size):
        large = super().__new__(cls, b"x")
        large.size = size
        return large

    def __len__(self):
        return self.size


class Contents:
    """The kept contents of a node, a pod and a PersistentVolume, over informers that the test fills; None is not synced."""

    def __init__(self, *, nodes=("n",), pods=(), volumes=(), secrets=(), is_connected=True):
        parts = SchedulerContext()
        self.clock, self.informers = parts.clock, parts.informers
        self.server, self.source, self.events = Server(), Source(), []
        recorder = SimpleNamespace(record_on=lambda *event: self.events.append(event))
        self.kept = KeptContents(
            SimpleNamespace(
                client=self.server,
                clock=parts.clock,
                informers=parts.informers,
                recorder=SimpleNamespace(of=lambda _component: recorder),
                metrics=parts.context.metrics,
            )
        )
        if is_connected:
            self.kept.connect(self.source)
        self.server.secrets = {Key.of(tree): tree for tree in secrets or ()}
        lists = {
            kinds.NODES: [meta(name, f"uid-{name}") for name in nodes],
            kinds.PODS: pods,
            kinds.PERSISTENT_VOLUMES: volumes,
            kinds.SECRETS: secrets,
        }
        for resource, trees in lists.items():
            if trees is not None:
                fill(self.informers.of(resource), [*trees], 1)

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.kept.run())
        await yield_to_loop(20)
        yield self.server.writes
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def pass_time(self, seconds):
        self.clock.advance(seconds)
        await yield_to_loop(20)

    def cache(self, *trees, resource=kinds.SECRETS):
        for tree in trees:
            self.informers.of(resource).put(tree)

    def uncache(self, tree, resource=kinds.SECRETS):
        self.informers.of(resource).remove(tree)


@pytest.fixture(autouse=True)
def no_error_is_logged(caplog):
    yield
    records = caplog.get_records("call")
    assert [record.getMessage() for record in records if record.levelname == "ERROR"] == []


# --- reading


@pytest.mark.parametrize(
    ("stored", "loaded"),
    [
        ([], None),
        ([secret(NODE)], b"kept"),
        ([{**secret(NODE), "data": {}}], b""),
        ([{**secret(NODE), "data": None}], b""),
        ([{**secret(NODE), "data": {"contents": "no base64!"}}], b""),
    ],
)
async def test_contents_are_those_of_the_secret(stored, loaded):
    contents = Contents(secrets=stored)
    assert await contents.kept.load(NODE) == loaded
    assert contents.events == []


@pytest.mark.parametrize(
    ("stored", "is_kept"), [([], False), ([secret(VOLUME)], True), ([secret(VOLUME, type_="Opaque")], False)]
)
async def test_only_a_secret_of_the_type_keeps_contents(stored, is_kept):
    assert Contents(secrets=stored).kept.is_kept(VOLUME) is is_kept


@pytest.mark.parametrize(
    ("volume", "objects", "about", "description"),
    [
        (NODE, {}, meta("n", "uid-n"), "the host paths of node n"),
        (POD, {"pods": [pod("other"), pod()]}, pod(), "the volume cache of the pod with the uid uid-p"),
        (
            VOLUME,
            {"volumes": [persistent(claimRef=CLAIM)]},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": CLAIM},
            "the volume v",
        ),
        (VOLUME, {"volumes": [persistent()]}, persistent(), "the volume v"),
    ],
)
async def test_loss_is_an_event_of_the_object_that_has_the_volume(volume, objects, about, description):
    contents = Contents(secrets=[secret(volume)], **objects)
    contents.server.error = InternalError("broken disk")
    assert await contents.kept.load(volume) is None
    message = f"The kept contents of {description} are lost, because they cannot be read: {InternalError('broken disk')}"
    assert contents.events == [("", about, "Warning", "ContentsLost", message)]


@pytest.mark.parametrize("volume", [POD, VOLUME, ("node", "other")])
async def test_loss_of_an_absent_object_is_no_event(volume):
    contents = Contents()
    contents.kept.note_loss(volume, "broken")
    assert contents.events == []


async def test_contents_of_nodes_are_loaded_before_a_container_has_them():
    contents = Contents(secrets=[secret(POD), secret(("x", "y")), secret(NODE)])
    await contents.kept.load_nodes()
    assert contents.source.replaced == [(NODE, b"kept")]


async def test_contents_of_nodes_are_loaded_when_all_are_known():
    contents = Contents(secrets=None)
    contents.server.secrets = {KEYS[NODE]: secret(NODE)}
    task = asyncio.create_task(contents.kept.load_nodes())
    await yield_to_loop(20)
    assert not task.done()
    fill(contents.informers.of(kinds.SECRETS), [secret(NODE)], 1)
    await task
    assert contents.source.replaced == [(NODE, b"kept")]


@pytest.mark.parametrize("stored", [secret(NODE, type_="Opaque"), secret(NODE, annotation="node")])
async def test_other_secrets_are_no_contents_of_nodes(stored):
    contents = Contents(secrets=[stored])
    await contents.kept.load_nodes()
    assert contents.source.replaced == []


# --- writing


@pytest.mark.parametrize(
    ("volume", "objects", "owner"),
    [
        (NODE, {}, {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "uid-n"}),
        (POD, {}, None),
        (
            VOLUME,
            {"volumes": [persistent()]},
            {"apiVersion": "v1", "kind": "PersistentVolume", "name": "v", "uid": "uid-v"},
        ),
    ],
)
async def test_change_is_written_after_a_second(volume, objects, owner):
    contents = Contents(**objects)
    async with contents.running() as writes:
        contents.kept.note_change(volume)
        contents.kept.note_change(volume)
        await contents.pass_time(0.9)
        assert writes == []
        await contents.pass_time(0.1)
        assert writes == [("create", KEYS[volume].name)]
    written = contents.server.secrets[KEYS[volume]]
    assert written["metadata"]["annotations"] == {"mockube.dev/volume": "/".join(volume)}
    assert written["metadata"].get("ownerReferences") == (owner and [owner])
    assert (written["type"], written["data"]) == (TYPE, {"contents": b64encode(b"new").decode()})


@pytest.mark.parametrize(
    ("volume", "objects"),
    [(NODE, {"nodes": ["other"]}), (VOLUME, {}), (VOLUME, {"volumes": [persistent("another uid")]})],
)
async def test_contents_without_their_owner_are_not_written(volume, objects):
    contents = Contents(**objects)
    async with contents.running() as writes:
        contents.kept.note_change(volume)
        await contents.pass_time(1)
        assert writes == []


async def test_contents_that_are_not_in_memory_are_not_written():
    contents = Contents()
    contents.source.contents = None
    async with contents.running() as writes:
        contents.kept.note_change(NODE)
        await contents.pass_time(1)
        assert writes == []


@pytest.mark.parametrize(
    ("is_cached", "is_stored", "verbs"),
    [
        (False, False, ["create"]),
        (True, True, ["update"]),
        (False, True, ["create", "update"]),
        (True, False, ["update", "create"]),
    ],
)
async def test_write_succeeds_with_an_outdated_cache(is_cached, is_stored, verbs):
    contents = Contents()
    if is_cached:
        contents.cache(secret(NODE))
    if is_stored:
        contents.server.secrets[KEYS[NODE]] = secret(NODE)
    async with contents.running() as writes:
        contents.kept.note_change(NODE)
        await contents.pass_time(1)
        assert [verb for verb, _ in writes] == verbs


async def test_second_write_needs_no_cache():
    contents = Contents()
    async with contents.running() as writes:
        for _ in range(2):
            contents.kept.note_change(NODE)
            await contents.pass_time(10)
        assert [verb for verb, _ in writes] == ["create", "update"]


@pytest.mark.parametrize(
    ("size", "others", "pause"),
    [(1, 0, 5), (640 << 10, 0, 10), (1, 199, 10)],
    ids=["five seconds", "64 KiB a second", "twenty volumes a second"],
)
async def test_next_write_waits_longer_after_large_or_many_contents(size, others, pause):
    contents = Contents()
    async with contents.running() as writes:
        for number in range(others):
            contents.cache(meta(f"other-{number}", "uid"), resource=kinds.NODES)
            contents.kept.note_change(("node", f"other-{number}"))
        await contents.pass_time(1)
        await yield_to_loop(1000)
        contents.source.contents = EncodedContents(Large(size), ())
        contents.kept.note_change(NODE)
        await contents.pass_time(1)
        writes.clear()
        contents.kept.note_change(NODE)
        await contents.pass_time(pause - 0.1)
        assert writes == []
        await contents.pass_time(0.1)
        assert writes == [("update", "mockube-node-n")]


async def test_failed_write_is_repeated(caplog):
    contents = Contents()
    async with contents.running() as writes:
        contents.server.error = InternalError("full")
        contents.kept.note_change(NODE)
        await contents.pass_time(1)
        contents.server.error = None
        await contents.pass_time(1)
        assert [verb for verb, _ in writes] == ["create", "create"]
    assert "full" in caplog.text
    caplog.clear()


@pytest.mark.parametrize("error", [None, InternalError("full")])
async def test_end_writes_what_has_changed(error, caplog):
    contents = Contents(volumes=[persistent()])
    contents.server.error = error
    async with contents.kept.running():
        contents.kept.note_change(NODE)
        contents.kept.note_change(VOLUME)
    names = [name for _, name in contents.server.writes]
    if error:
        assert "The latest contents of the volume v, the host paths of node n are lost" in caplog.text
    else:
        assert names == ["mockube-node-n", "mockube-volume-uid-v"]


# --- contents that are too large


@pytest.mark.parametrize(
    ("left_out", "names"),
    [
        (("/a", "/b"), "/a, /b"),
        (("/1", "/2", "/3", "/4", "/5"), "/1, /2, /3, /4, /5"),
        (("/1", "/2", "/3", "/4", "/5", "/6", "/7"), "/1, /2, /3, /4, /5 and 2 more"),
    ],
)
async def test_files_without_space_are_reported_once(left_out, names):
    contents = Contents()
    contents.source.contents = EncodedContents(b"new", left_out)
    async with contents.running() as writes:
        for _ in range(2):
            contents.kept.note_change(NODE)
            await contents.pass_time(10)
        assert len(writes) == 2
        contents.source.contents = EncodedContents(b"new", ("/other",))
        contents.kept.note_change(NODE)
        await contents.pass_time(10)
    first, second = (event[4] for event in contents.events)
    assert first == (
        f"the host paths of node n has too many bytes to keep: {names} will be lost when the controller manager ends"
    )
    assert "/other" in second


async def test_contents_of_all_volumes_have_a_maximum():
    contents = Contents(nodes=["n", "other"])
    contents.source.contents = EncodedContents(Large(40 << 20), ())
    async with contents.running() as writes:
        contents.kept.note_change(NODE)
        await contents.pass_time(1)
        contents.kept.note_change(("node", "other"))
        await contents.pass_time(10_000)
        contents.kept.note_change(NODE)
        await contents.pass_time(10_000)
        assert writes == [("create", "mockube-node-n"), ("update", "mockube-node-n")]
    [event] = contents.events
    assert event[1]["metadata"]["name"] == "other"
    assert "all files will be lost" in event[4]


# --- what others do


@pytest.mark.parametrize(
    ("known", "changed", "replaced"),
    [
        (True, secret(NODE, "7", data=b"theirs"), [(NODE, b"theirs")]),
        (True, secret(NODE, "1"), []),
        (True, secret(NODE, "7", type_="Opaque"), []),
        (True, secret(NODE, "7", annotation="node"), []),
        (True, secret(NODE, "7", annotation="x/y"), []),
        (False, secret(NODE, "7"), []),
    ],
    ids=["newer version", "own version", "other type", "no volume", "other volume", "not in memory"],
)
async def test_newer_version_replaces_contents_in_memory(known, changed, replaced):
    contents = Contents(secrets=[secret(NODE)])
    changes, losses = [], []
    contents.kept.on_node_change(changes.append)
    contents.kept.on_node_loss(losses.append)
    if known:
        await contents.kept.load(NODE)
    contents.server.secrets[KEYS[NODE]] = changed
    contents.cache(changed)
    async with contents.running() as writes:
        assert contents.source.replaced == replaced
        assert (changes, losses, writes) == (["n"] * len(replaced), [], [])


async def test_version_that_is_known_does_not_hasten_a_write():
    contents = Contents(secrets=[secret(NODE)])
    await contents.kept.load(NODE)
    async with contents.running() as writes:
        contents.kept.note_change(NODE)
        contents.cache(secret(NODE))
        await contents.pass_time(0)
        assert writes == []


async def test_own_write_that_the_cache_has_before_its_response_replaces_nothing():
    contents = Contents(secrets=[secret(NODE)])
    contents.server.on_write = contents.cache
    await contents.kept.load(NODE)
    async with contents.running() as writes:
        contents.kept.note_change(NODE)
        await contents.pass_time(1)
        assert writes == [("update", "mockube-node-n")]
    assert contents.source.replaced == []


async def test_newer_version_drops_changes_that_are_not_written():
    contents = Contents(secrets=[secret(NODE)])
    await contents.kept.load(NODE)
    async with contents.running() as writes:
        contents.kept.note_change(NODE)
        contents.cache(secret(NODE, "7"))
        await contents.pass_time(10)
        assert writes == []


@pytest.mark.parametrize(("volume", "losses"), [(NODE, ["n"]), (VOLUME, [])])
async def test_deleted_secret_drops_contents_in_memory(volume, losses):
    contents = Contents(secrets=[secret(volume)], volumes=[persistent()])
    lost, changed = [], []
    contents.kept.on_node_loss(lost.append)
    contents.kept.on_node_change(changed.append)
    await contents.kept.load(volume)
    async with contents.running() as writes:
        contents.uncache(secret(volume))
        await contents.pass_time(0)
        assert contents.source.replaced == [(volume, None)]
        assert (lost, changed) == (losses, losses)
        contents.server.secrets.clear()
        contents.kept.note_change(volume)
        await contents.pass_time(10)
        assert [verb for verb, _ in writes] == ["create"], "it is known that there is none"


@pytest.mark.parametrize(("volume", "changes"), [(NODE, ["n"]), (POD, []), (VOLUME, [])])
async def test_only_changes_of_nodes_are_reported_at_once(volume, changes):
    contents = Contents()
    reported = []
    contents.kept.on_node_change(reported.append)
    contents.kept.note_change(volume)
    assert reported == changes


async def test_deleted_volume_is_dropped():
    contents = Contents(volumes=[persistent()])
    contents.cache(persistent(claimRef=CLAIM), resource=kinds.PERSISTENT_VOLUMES)
    assert contents.source.dropped == []
    contents.uncache(persistent(), kinds.PERSISTENT_VOLUMES)
    assert contents.source.dropped == [VOLUME]


async def test_volume_that_is_deleted_before_there_is_a_run_time_has_no_contents():
    contents = Contents(volumes=[persistent()], is_connected=False)
    contents.uncache(persistent(), kinds.PERSISTENT_VOLUMES)
    assert contents.source.dropped == []


# --- pods


async def test_contents_of_a_removed_pod_are_deleted():
    contents = Contents(pods=[pod()])
    async with contents.running() as writes:
        contents.kept.note_change(POD)
        await contents.pass_time(1)
        contents.cache(secret(POD))
        contents.kept.note_change(POD)
        contents.kept.remove_pod("uid-p")
        await contents.pass_time(10)
        assert writes == [("create", KEYS[POD].name), ("delete", KEYS[POD].name)]


async def test_nothing_is_known_of_a_removed_pod():
    contents = Contents(pods=[pod()], nodes=["n"])
    contents.source.contents = EncodedContents(Large(40 << 20), ("/a",))
    async with contents.running() as writes:
        contents.kept.note_change(POD)
        await contents.pass_time(1)
        contents.kept.remove_pod("uid-p")
        await contents.pass_time(0)
        contents.server.secrets.clear()
        contents.source.contents = EncodedContents(b"new", ("/a",))
        contents.kept.note_change(POD)
        await contents.pass_time(1)
        contents.cache(contents.server.secrets[KEYS[POD]])
        contents.kept.note_change(POD)
        await contents.pass_time(1000)
        assert [verb for verb, _ in writes] == ["create", "create", "update"]
    assert [about["metadata"]["uid"] for _, about, *_ in contents.events] == ["uid-p", "uid-p"]


async def test_removed_pod_has_no_part_of_the_maximum():
    contents = Contents(pods=[pod()])
    contents.source.contents = EncodedContents(Large(40 << 20), ())
    async with contents.running() as writes:
        contents.kept.note_change(POD)
        await contents.pass_time(1)
        contents.kept.remove_pod("uid-p")
        contents.kept.note_change(NODE)
        await contents.pass_time(1)
        assert writes == [("create", KEYS[POD].name), ("create", KEYS[NODE].name)]


async def test_contents_of_a_pod_that_were_never_written_are_not_deleted():
    contents = Contents(pods=[pod()])
    async with contents.running() as writes:
        contents.kept.note_change(POD)
        contents.kept.remove_pod("uid-p")
        await contents.pass_time(10)
        assert writes == []


@pytest.mark.parametrize(("pods", "is_deleted"), [([pod()], False), ([pod("other")], True), ([], True)])
async def test_start_deletes_contents_of_absent_pods(pods, is_deleted):
    contents = Contents(pods=pods, secrets=[secret(POD), secret(NODE)])
    async with contents.running() as writes:
        assert writes == ([("delete", KEYS[POD].name)] if is_deleted else [])


@pytest.mark.parametrize("unsynced", [kinds.SECRETS, kinds.PODS, kinds.PERSISTENT_VOLUMES])
async def test_nothing_is_deleted_before_all_objects_are_known(unsynced):
    lists = {kinds.SECRETS: [secret(POD)], kinds.PODS: [pod("other")], kinds.PERSISTENT_VOLUMES: []}
    names = {kinds.SECRETS: "secrets", kinds.PODS: "pods", kinds.PERSISTENT_VOLUMES: "volumes"}
    contents = Contents(
        **{names[resource]: trees for resource, trees in lists.items()} | {names[unsynced]: None}
    )
    contents.server.secrets = {KEYS[POD]: secret(POD)}
    async with contents.running() as writes:
        assert writes == []
        fill(contents.informers.of(unsynced), lists[unsynced], 1)
        await yield_to_loop(20)
        assert writes == [("delete", KEYS[POD].name)]
