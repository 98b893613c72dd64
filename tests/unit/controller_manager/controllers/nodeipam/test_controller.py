"""Which ranges of pod addresses nodes get, which are reserved, and which become free again."""

from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import Conflict
from mockube.client.cache.store import Change
from mockube.client.queue.reconcile_loop import RequeueWithBackoff
from mockube.client.resources import Key
from mockube.controller_manager.config.settings import Config, Networks
from mockube.controller_manager.controllers.nodeipam.controller import NodeIpamController


class Cluster:
    """A controller over nodes that a test gives, and what it writes."""

    def __init__(self, clock, metrics, *nodes, services=(), **networks):
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.patches, self.events, self.added, self.problem = [], [], [], None
        self.is_late = False
        """Whether a node is deleted before its range is written."""
        config = Config(
            networks=Networks(
                allocate_node_cidrs=networks.pop("allocates", True),
                cluster_cidr=networks.pop("cluster_cidr", ("10.0.0.0/22",)),
                service_cluster_ip_range=services,
                **networks,
            )
        )
        lister = SimpleNamespace(get=lambda _, name: self.nodes.get(name), all=lambda: [*self.nodes.values()])
        informer = SimpleNamespace(lister=lister, add_handler=self.handlers.append, wait_synced=self._synced)
        context = SimpleNamespace(
            options=config,
            client=self,
            recorder=SimpleNamespace(of=lambda _: self),
            informers=SimpleNamespace(of=lambda _: informer),
            clock=clock,
            metrics=metrics,
        )
        self.controller = NodeIpamController(context)
        self.controller._loop.add = self.added.append

    @property
    def handlers(self):
        return self.__dict__.setdefault("_handlers", [])

    async def _synced(self):
        pass

    def record(self, about, kind, reason, message):
        self.events.append((about["metadata"]["name"], kind, reason, message))

    async def patch(self, _, key, body, *, kind):
        assert kind == "strategic"
        if self.is_late:
            self.nodes.pop(key.name)
        if self.problem:
            raise self.problem
        self.patches.append((key.name, body["metadata"]["uid"], *body["spec"]["podCIDRs"]))
        assert body["spec"]["podCIDR"] == body["spec"]["podCIDRs"][0]

    async def sync(self, *names):
        for name in names:
            await self.controller._sync(Key("", name))

    def delete(self, name):
        node = self.nodes.pop(name)
        self.handlers[0](Change(node, None))


@pytest.fixture
def make(clock, metrics):
    return lambda *nodes, **more: Cluster(clock, metrics, *nodes, **more)


def node(name, *ranges, uid="", deleting=False, **spec):
    metadata = {"name": name, "uid": uid or f"uid-{name}"}
    if deleting:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": {"podCIDRs": [*ranges], **spec} if ranges else spec}


async def test_each_node_gets_the_next_range(make):
    cluster = make(node("a"), node("b"))
    await cluster.sync("a", "b", "a")
    assert cluster.patches == [("a", "uid-a", "10.0.0.0/24"), ("b", "uid-b", "10.0.1.0/24")]


async def test_each_node_gets_a_range_of_each_family(make):
    cluster = make(node("a"), cluster_cidr=("10.0.0.0/22", "fd00::/60"))
    await cluster.sync("a")
    assert cluster.patches == [("a", "uid-a", "10.0.0.0/24", "fd00::/64")]


@pytest.mark.parametrize(
    ("present", "name"),
    [(node("a", deleting=True), "a"), (node("a"), "b"), (node("a", "10.0.3.0/24"), "a")],
    ids=["deleted", "absent", "with a range"],
)
async def test_node_that_gets_no_range(make, present, name):
    cluster = make(present)
    await cluster.sync(name)
    assert cluster.patches == []


@pytest.mark.parametrize(
    "present",
    [node("a", "10.0.0.0/24"), node("a", podCIDR="10.0.0.0/24"), node("a", "10.0.0.7/24")],
    ids=["ranges", "range", "address"],
)
async def test_range_of_a_node_is_reserved(make, present):
    cluster = make(present, node("b"))
    await cluster.sync("a", "b")
    assert cluster.patches == [("b", "uid-b", "10.0.1.0/24")]


@pytest.mark.parametrize(
    ("services", "first"),
    [(("10.0.0.0/24",), "10.0.1.0/24"), (("10.9.0.0/24", "fd00::/64"), "10.0.0.0/24"), ((), "10.0.0.0/24")],
)
async def test_range_of_services_is_reserved(make, services, first):
    cluster = make(node("a"), services=services)
    await cluster.sync("a")
    assert cluster.patches == [("a", "uid-a", first)]


@pytest.mark.parametrize("text", ["192.168.0.0/24", "x", "10.0.0.0/24,10.0.1.0/24"])
async def test_range_that_does_not_fit_is_logged_and_left(make, caplog, text):
    cluster = make(node("a", *text.split(",")), node("b"))
    await cluster.sync("a", "b")
    assert len(caplog.records) == 1
    assert [each[0] for each in cluster.patches] == ["b"]
    await cluster.sync("a")
    assert len(caplog.records) == 1


async def test_range_of_a_deleted_node_is_free_again_last(make):
    cluster = make(node("a", "10.0.0.0/24"), *(node(name) for name in "bcde"))
    await cluster.sync("a", "b")
    cluster.delete("a")
    await cluster.sync("c", "d", "e")
    assert [each[2] for each in cluster.patches] == [
        "10.0.1.0/24",
        "10.0.2.0/24",
        "10.0.3.0/24",
        "10.0.0.0/24",
    ]


async def test_range_of_another_network_of_a_deleted_node_is_not_released(make):
    cluster = make(node("a", "192.168.0.0/24"), node("b"))
    cluster.delete("a")
    await cluster.sync("b")
    assert cluster.patches == [("b", "uid-b", "10.0.0.0/24")]


async def test_node_that_was_created_again_gets_a_range(make):
    cluster = make(node("a"))
    await cluster.sync("a")
    cluster.nodes["a"] = node("a", uid="other")
    await cluster.sync("a")
    assert cluster.patches == [("a", "uid-a", "10.0.0.0/24"), ("a", "other", "10.0.1.0/24")]


async def test_node_without_a_range_is_tried_again_when_all_are_used(make):
    cluster = make(node("a"), node("b"), cluster_cidr=("fd00::/60", "10.0.0.0/24"))
    await cluster.sync("a")
    with pytest.raises(RequeueWithBackoff, match="failed to allocate cidr from cluster cidr at idx:1"):
        await cluster.sync("b")
    assert cluster.events == [("b", "Normal", "CIDRNotAvailable", "Node b status is now: CIDRNotAvailable")]
    cluster.nodes["a"] = node("a", *cluster.patches[0][2:])
    cluster.delete("a")
    await cluster.sync("b")
    assert cluster.patches[0][:3] == ("a", "uid-a", "fd00::/64")
    assert cluster.patches[-1][0] == "b"


@pytest.mark.parametrize("is_there", [True, False])
async def test_range_is_free_again_when_the_node_cannot_be_written(make, is_there):
    cluster = make(node("a"))
    cluster.problem = Conflict("changed")
    cluster.is_late = not is_there
    with pytest.raises(Conflict):
        await cluster.sync("a")
    assert [each[2] for each in cluster.events] == (["CIDRAssignmentFailed"] if is_there else [])
    assert cluster.controller._sets[0]._used == set()
    assert cluster.controller._allocated == {}


async def test_controller_that_allocates_nothing_looks_at_no_node(make):
    cluster = make(node("a"), allocates=False)
    assert cluster.handlers == []


def test_changed_node_is_looked_at(make):
    cluster = make(node("a"))
    cluster.handlers[0](Change(None, node("a")))
    assert cluster.added == [Key("", "a")]


async def test_ranges_of_all_nodes_are_reserved_before_the_first_is_given(make):
    cluster = make(node("a"), node("z", "10.0.0.0/24"))

    async def run():
        await cluster.sync("a")

    cluster.controller._loop.run = run
    await cluster.controller.run()
    assert cluster.patches == [("a", "uid-a", "10.0.1.0/24")]
