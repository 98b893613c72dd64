"""A node is absent after a quarantine, and only if the server does not have it either."""

from types import SimpleNamespace

from mockube.apimachinery.status import NotFound
from mockube.client.kinds import NODES, PODS
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.controllers.podgc.controller import INDEXES, PodGarbageCollector
from tests.support.controllers.fake_caches import FakeCaches


class Client:
    """Has some nodes; keeps the pods that are patched and deleted."""

    def __init__(self, *nodes):
        self.nodes = nodes
        self.read, self.failed, self.deleted = [], [], []

    async def get(self, _, key):
        self.read.append(key.name)
        if key.name not in self.nodes:
            raise NotFound("gone")

    async def patch(self, _, key, body, **__):
        self.failed.append((key.name, [each["reason"] for each in body["status"].get("conditions", ())]))

    async def delete(self, _, key, *, uid, grace_period_seconds):
        if uid == "uid-raced":
            raise NotFound("gone")
        assert grace_period_seconds == 0
        self.deleted.append(key.name)


def pod(name, node, *, phase="Running", **metadata):
    named = {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata}
    return {"metadata": named, "spec": {"nodeName": node}, "status": {"phase": phase}}


def collector_of(client, nodes, pods):
    caches = FakeCaches({NODES: nodes, PODS: pods}, {PODS: INDEXES})
    informers = {
        resource: SimpleNamespace(add_index=lambda *_: None, lister=caches.of(resource))
        for resource in (NODES, PODS)
    }
    clock = SteppedClock()
    context = SimpleNamespace(
        client=client, clock=clock, options=Config(), informers=SimpleNamespace(of=informers.__getitem__)
    )
    return PodGarbageCollector(context), clock


NODE = {"metadata": {"name": "here"}}


async def test_pods_of_a_node_that_stays_absent_are_failed_and_deleted():
    client = Client("known")
    pods = [pod("a", "here"), pod("b", "gone"), pod("c", "known"), pod("d", "gone", phase="Failed")]
    collector, clock = collector_of(client, [NODE], pods)
    await collector._collect()
    clock.advance(39)
    await collector._collect()
    assert client.read == []
    clock.advance(1)
    await collector._collect()
    assert client.read == ["gone", "known"]
    assert client.failed == [("b", ["DeletionByPodGC"])]
    assert client.deleted == ["b", "d"]


async def test_quarantine_begins_anew_when_a_node_was_back():
    client = Client()
    collector, clock = collector_of(client, [], [pod("a", "gone")])
    await collector._collect()
    collector._missing_since.clear()
    clock.advance(60)
    await collector._collect()
    assert client.read == []


async def test_pod_that_is_deleted_meanwhile_is_left_out():
    client = Client()
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    collector, _ = collector_of(client, [], [pod("raced", "", **ending), pod("b", "", **ending)])
    await collector._collect()
    assert client.deleted == ["b"]
    assert [name for name, _ in client.failed] == ["raced", "b"]
