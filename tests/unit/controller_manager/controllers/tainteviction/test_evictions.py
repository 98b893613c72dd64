"""The taint eviction controller with a server: when pods of a tainted node are evicted, and what cancels that."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.tainteviction.controller import TAINT_EVICTION
from tests.support.controllers.running_manager import running_cluster
from tests.support.metric_samples import sample_value

PODS = "/api/v1/namespaces/default/pods"
TAINT = {"key": "k", "value": "v", "effect": "NoExecute"}
MARKED = "Marking for deletion Pod default/p"
CANCELLED = "Cancelling deletion of Pod default/p"


class Cluster:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    async def taint(self, *taints):
        await self.server.patch("/api/v1/nodes/n", {"spec": {"taints": list(taints)}})
        await self.manager.settle()

    async def run(self, seconds=None, *, node="n"):
        toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
        tolerations = [] if seconds is None else [{**toleration, "tolerationSeconds": seconds}]
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "tolerations": tolerations}
        answer = await self.server.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
        assert answer.status == 201, answer.body
        await self.manager.settle()

    async def remove(self):
        await self.server.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
        await self.manager.settle()

    async def state(self):
        """Return the pod's condition if it is being evicted, False if it runs, or None without it."""
        answer = await self.server.get(f"{PODS}/p")
        if answer.status == 404:
            return None
        pod = answer.body
        if "deletionTimestamp" not in pod["metadata"]:
            return False
        (condition,) = (each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget")
        return condition["reason"], condition["status"]

    async def events(self):
        events = (await self.server.get("/api/v1/namespaces/default/events")).body["items"]
        return [event["message"] for event in events if event["reason"] == "TaintManagerEviction"]

    @property
    def retries(self):
        labels = {"name": "taint_eviction"}
        return sample_value(self.manager.metrics.registry, "workqueue_retries_total", labels) or 0


EVICTED = ("DeletionByTaintManager", "True")


@pytest.fixture
async def cluster():
    async with running_cluster(clock=SteppedClock(), runnables=[TAINT_EVICTION]) as (server, manager):
        await server.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield Cluster(server, manager)


async def test_pod_is_evicted_at_once_without_toleration(cluster):
    await cluster.run()
    assert await cluster.state() is False
    await cluster.taint(TAINT)
    assert await cluster.state() == EVICTED
    await cluster.manager.step(5)
    assert await cluster.events() == [MARKED]


async def test_pod_that_comes_to_a_tainted_node_is_evicted(cluster):
    await cluster.taint(TAINT)
    await cluster.run()
    assert await cluster.state() == EVICTED


async def test_pod_is_evicted_when_its_toleration_ends(cluster):
    await cluster.run(60)
    await cluster.taint(TAINT)
    await cluster.manager.step(59)
    assert await cluster.state() is False
    await cluster.taint(TAINT, {"key": "other", "effect": "NoSchedule"})
    await cluster.manager.step(2)
    assert await cluster.state() == EVICTED


async def test_removed_taint_cancels_the_eviction(cluster):
    await cluster.run(60)
    await cluster.taint(TAINT)
    await cluster.manager.step(30)
    await cluster.taint()
    await cluster.manager.step(60)
    assert await cluster.state() is False
    assert await cluster.events() == [CANCELLED]
    await cluster.taint(TAINT)
    await cluster.manager.step(59)
    assert await cluster.state() is False


async def test_eviction_of_an_untainted_node_is_not_cancelled(cluster):
    await cluster.run(60)
    await cluster.taint({"key": "other", "effect": "NoSchedule"})
    await cluster.manager.step(5)
    assert await cluster.events() == []


async def test_removed_pod_is_not_evicted_and_its_successor_has_the_whole_time(cluster):
    await cluster.taint(TAINT)
    await cluster.run(60)
    await cluster.manager.step(30)
    await cluster.remove()
    await cluster.manager.step(1)
    await cluster.run(60)
    await cluster.manager.step(50)
    assert await cluster.state() is False
    await cluster.remove()
    await cluster.manager.step(60)
    assert await cluster.state() is None
    assert cluster.retries == 0


async def test_pod_of_another_node_is_left_alone(cluster):
    await cluster.server.post("/api/v1/nodes", {"metadata": {"name": "m"}})
    await cluster.run(node="m")
    await cluster.taint(TAINT)
    assert await cluster.state() is False
