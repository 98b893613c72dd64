"""Own writes: a key waits until the caches contain the writes made for it."""

import pytest

from mockube.client.cache.revisions import EXPIRY_SECONDS
from mockube.client.kinds import PODS, REPLICA_SETS, SECRETS
from mockube.client.podview import PodView
from mockube.client.wire import Unreachable
from mockube.controller_manager.control.actions import ObjectRef
from mockube.controller_manager.control.own_writes import OwnWrites
from tests.support.recorded.recorded_client import key

WEB, OTHER = key("web"), key("other")
VICTIM = ObjectRef(key("a"), "u-a")


class Cache:
    """A fake informer with the methods that the code under test calls."""

    def __init__(self):
        self.revision = 10
        self.objects = {}
        self.lister = self

    def get(self, namespace, name):
        return self.objects.get((namespace, name))

    def in_namespace(self, namespace):
        return [view for (where, _), view in self.objects.items() if where == namespace]

    async def wait_for_revision(self, revision):
        self.revision = max(revision, self.revision)


class Server:
    def __init__(self):
        self.objects = []
        self.fails = False
        self.asked = []

    async def list(self, resource, namespace):
        self.asked.append((resource, namespace))
        if self.fails:
            raise Unreachable("away")
        return self.objects


@pytest.fixture
def caches():
    return {PODS: Cache(), REPLICA_SETS: Cache()}


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def own_writes(caches, server, clock):
    return OwnWrites(caches, server.list, clock)


def object_at(revision):
    return {"metadata": {"resourceVersion": str(revision)}}


def pod(uid="u-a", **metadata):
    return PodView.of({"metadata": {"namespace": "default", "name": "a", "uid": uid, **metadata}})


def waits_for(own_writes, key_):
    return [revision for _, revision in own_writes.pending_writes(key_)]


def test_key_without_writes_waits_for_nothing(own_writes):
    assert waits_for(own_writes, WEB) == []


def test_key_waits_for_cache_to_reach_its_last_write(own_writes, caches):
    for revision in (20, 22, 21):
        own_writes.of(WEB).note_write(PODS, object_at(revision))
    assert waits_for(own_writes, WEB) == [22]
    assert waits_for(own_writes, OTHER) == []
    caches[PODS].revision = 21
    assert waits_for(own_writes, WEB) == [22]
    caches[PODS].revision = 22
    assert waits_for(own_writes, WEB) == []


def test_key_waits_for_each_written_resource(own_writes, caches):
    own_writes.of(WEB).note_write(PODS, object_at(20))
    own_writes.of(WEB).note_write(REPLICA_SETS, object_at(21))
    caches[PODS].revision = 30
    assert waits_for(own_writes, WEB) == [21]


def test_writes_of_unwatched_resource_are_not_awaited(own_writes):
    own_writes.of(WEB).note_write(SECRETS, object_at(20))
    own_writes.of(WEB).note_deletion(SECRETS, VICTIM, None)
    assert waits_for(own_writes, WEB) == []


def test_awaited_write_expires(own_writes, clock):
    own_writes.of(WEB).note_write(PODS, object_at(20))
    clock.advance(EXPIRY_SECONDS - 1)
    assert waits_for(own_writes, WEB) == [20]
    clock.advance(1)
    assert waits_for(own_writes, WEB) == []


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(pod(), [11], id="object exists"),
        pytest.param(pod(deletionTimestamp="2030-01-01T00:00:00Z"), [], id="being deleted"),
        pytest.param(pod(uid="u-b"), [], id="other object with its name"),
        pytest.param(None, [], id="gone"),
    ],
)
def test_deletion_without_revision_is_awaited_by_uid(own_writes, caches, shown, expected):
    caches[PODS].objects["default", "a"] = shown
    own_writes.of(WEB).note_deletion(PODS, VICTIM, {"kind": "Status", "metadata": {}})
    assert waits_for(own_writes, WEB) == expected


def test_deletion_with_revision_is_awaited_as_write(own_writes):
    own_writes.of(WEB).note_deletion(PODS, VICTIM, object_at(20))
    assert waits_for(own_writes, WEB) == [20]


async def test_unknown_outcome_is_resolved_by_list(own_writes, server):
    server.objects = [pod(uid="u-b", resourceVersion="50").object, pod(uid="u-c", resourceVersion="7").object]
    own_writes.of(WEB).note_unknown(PODS)
    server.fails = True
    with pytest.raises(Unreachable):
        await own_writes.resolve(WEB)
    server.fails = False
    await own_writes.resolve(WEB)
    assert waits_for(own_writes, WEB) == [50]
    await own_writes.resolve(WEB)
    assert server.asked == [(PODS, "default")] * 2


async def test_object_missing_after_unknown_outcome_must_leave_cache(own_writes, server, caches):
    caches[PODS].objects["default", "a"] = pod()
    own_writes.of(WEB).note_unknown(PODS)
    await own_writes.resolve(WEB)
    assert waits_for(own_writes, WEB) == [11]
    caches[PODS].objects.clear()
    assert waits_for(own_writes, WEB) == []


async def test_wait_ends_when_caches_reach_revision(own_writes):
    own_writes.of(WEB).note_write(PODS, object_at(20))
    await own_writes.wait(WEB)
    assert waits_for(own_writes, WEB) == []


async def test_wait_ends_when_history_restarts(own_writes, caches):
    """An informer ends all waits when the server returns with lower revisions."""

    async def let_go(_):
        caches[PODS].revision = 3

    caches[PODS].wait_for_revision = let_go
    own_writes.of(WEB).note_write(PODS, object_at(20))
    await own_writes.wait(WEB)
    assert waits_for(own_writes, WEB) == []
