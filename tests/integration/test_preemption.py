"""Preemption by a scheduler with a real server: how it evicts the pods that make room for another one."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from mockube.client.wire import NoResponse
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import KUBE_SCHEDULER
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from mockube.scheduler.preemption_executor import PARALLELISM
from tests.support.controllers.running_manager import running_manager
from tests.support.controllers.scheduling import PODS, SchedulingScenario
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop
from tests.support.metric_samples import sample_value
from tests.support.server.apiserver import running

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
VICTIMS = 20


class Evictions:
    """Records the writes of evictions, which wait while they are paused."""

    def __init__(self):
        self.open = asyncio.Event()
        self.open.set()
        self.waiting = []
        self.most_at_once = 0
        self.order = []
        self.failures = 0
        self.faults = 0

    async def before_request(self, request):
        if "/pods/victim-" not in request.target:
            return
        if self.failures and request.method == "DELETE":
            self.failures -= 1
            raise NoResponse("the connection was lost")
        if self.faults and request.method == "DELETE":
            self.faults -= 1
            raise RuntimeError("a fault in the program")
        name = request.target.split("/pods/")[1].split("/")[0].split("?")[0]
        self.waiting.append(name)
        self.most_at_once = max(self.most_at_once, len(self.waiting))
        await self.open.wait()
        await yield_to_loop()  # Evictions that are sent concurrently wait for each other here.
        self.waiting.remove(name)
        self.order.append((request.method, name))

    async def until(self, number):
        async with asyncio.timeout(WAIT_TIMEOUT):
            while len(self.waiting) < number:
                await yield_to_loop()


@pytest.fixture
async def evictions():
    return Evictions()


@asynccontextmanager
async def scheduling(server, clock):
    controllers, runnables = [SERVICE_ACCOUNT], [KUBE_SCHEDULER]
    async with running_manager(server, clock, controllers=controllers, runnables=runnables) as manager:
        yield SchedulingScenario(server, manager)


@pytest.fixture
async def cluster(evictions):
    """A node that is full of pods of low priority."""
    clock = SteppedClock()
    async with running(clock=clock) as server, scheduling(server, clock) as cluster:
        for name, value in (("middle", 5), ("high", 10)):
            await cluster.post(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        await cluster.node("a", cpu="2")
        for number in range(VICTIMS):
            assert await cluster.pod(f"victim-{number}", cpu="100m") == "a"
        cluster.manager.transport.before_request = evictions.before_request
        yield cluster


async def create_pod(cluster, name, **fields):
    """Create a pod, without waiting until it is scheduled."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": fields.pop("cpu", "2")}}}
    await cluster.post(PODS, {"metadata": {"name": name}, "spec": {"containers": [container], **fields}})


async def terminating(cluster):
    pods = (await cluster.server.get(PODS)).body["items"]
    return {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]}


async def test_victims_are_evicted_in_parallel_except_the_last(cluster, evictions):
    await create_pod(cluster, "greater", priorityClassName="high")
    await cluster.manager.settle()
    assert len(await terminating(cluster)) == VICTIMS
    assert evictions.most_at_once == PARALLELISM
    last = evictions.order[-1][1]
    assert evictions.order[-2:] == [("PATCH", last), ("DELETE", last)]
    for name in {name for _, name in evictions.order}:
        assert [method for method, one in evictions.order if one == name] == ["PATCH", "DELETE"]


async def test_other_pods_are_scheduled_while_victims_are_evicted(cluster, evictions):
    await cluster.node("b", cpu="1")
    evictions.open.clear()
    await create_pod(cluster, "greater", priorityClassName="high")
    await evictions.until(PARALLELISM)
    await create_pod(cluster, "other", cpu="1")
    async with asyncio.timeout(WAIT_TIMEOUT):
        while await cluster.place("other") is None:
            await yield_to_loop()
    evictions.open.set()
    await cluster.manager.settle()
    assert len(await terminating(cluster)) == VICTIMS


async def test_preempting_pod_is_retried_after_its_victims_are_deleted(cluster, evictions):
    await create_pod(cluster, "greater", priorityClassName="high")
    await cluster.manager.step(60)
    (event,) = await cluster.events("FailedScheduling")
    assert event["note"] == await cluster.refusal("greater")
    assert "series" not in event
    assert len(evictions.order) == 2 * VICTIMS
    for number in range(VICTIMS):
        await cluster.server.delete(f"{PODS}/victim-{number}", {"gracePeriodSeconds": 0})
    await cluster.manager.step(15)
    assert await cluster.place("greater") == "a"


async def test_failed_eviction_leaves_remaining_victims_to_next_attempt(cluster, evictions):
    evictions.failures = 1
    await create_pod(cluster, "greater", priorityClassName="high")
    await cluster.manager.step(5)
    first = await terminating(cluster)
    assert len(first) < VICTIMS
    for name in first:
        await cluster.server.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
    await cluster.manager.step(15)
    assert len(await terminating(cluster)) == VICTIMS - len(first)


async def test_unexpected_error_of_eviction_is_logged_and_preemption_is_retried(cluster, evictions, caplog):
    evictions.faults = 1
    await create_pod(cluster, "greater", priorityClassName="high")
    await cluster.manager.step(5)
    assert len(await terminating(cluster)) == VICTIMS
    texts = [caplog.handler.format(record) for record in caplog.records if record.exc_info]
    assert all("Traceback" in text and "RuntimeError: a fault in the program" in text for text in texts)
    assert "default/greater: preemption on node a failed" in texts[-1]
    registry = cluster.manager.metrics.registry
    labels = {"task": "scheduler/preempt"}
    assert sample_value(registry, "mockube_task_restarts_total", labels) == 1.0


async def test_pods_of_lower_priority_lose_their_nomination(cluster):
    await create_pod(cluster, "middle", priorityClassName="middle", cpu="200m")
    await cluster.manager.settle()
    assert (await cluster.server.get(f"{PODS}/middle")).body["status"]["nominatedNodeName"] == "a"
    await create_pod(cluster, "greater", priorityClassName="high")
    await cluster.manager.step(5)
    assert "nominatedNodeName" not in (await cluster.server.get(f"{PODS}/middle")).body["status"]
    assert (await cluster.server.get(f"{PODS}/greater")).body["status"]["nominatedNodeName"] == "a"


async def test_nomination_outlives_the_scheduler():
    clock = SteppedClock()
    async with running(clock=clock) as server:
        async with scheduling(server, clock) as cluster:
            await cluster.node("a", cpu="2")
            assert await cluster.pod("victim", cpu="1500m") == "a"
            await cluster.post(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 10})
            await create_pod(cluster, "greater", priorityClassName="high")
            await cluster.manager.settle()
            assert await terminating(cluster) == {"victim"}
        async with scheduling(server, clock) as cluster:
            await create_pod(cluster, "small", cpu="500m")
            await cluster.manager.step(5)
            assert await cluster.place("small") is None


async def test_nomination_that_another_program_writes_keeps_room_until_it_is_removed():
    clock = SteppedClock()
    async with running(clock=clock) as server, scheduling(server, clock) as cluster:
        await cluster.node("a", cpu="2")
        await create_pod(cluster, "large", cpu="3")
        await cluster.manager.settle()
        for node, place in (("a", None), (None, "a")):
            status = {"status": {"nominatedNodeName": node}}
            await cluster.server.patch(f"{PODS}/large/status", status)
            if node:
                await create_pod(cluster, "small", cpu="500m")
            await cluster.manager.step(5)
            assert await cluster.place("small") == place


async def test_nomination_ends_when_pod_gets_another_node():
    clock, is_open = SteppedClock(), asyncio.Event()

    async def wait_before_binding(request):
        if request.target.endswith("/pods/greater/binding"):
            await is_open.wait()

    async with running(clock=clock) as server, scheduling(server, clock) as cluster:
        await cluster.node("a", cpu="2", taints=[{"key": "slow", "effect": "NoSchedule"}])
        await cluster.node("b", cpu="1")
        cluster.manager.transport.before_request = wait_before_binding
        await create_pod(cluster, "greater", cpu="1", schedulingGates=[{"name": "example.com/wait"}])
        await cluster.server.patch(f"{PODS}/greater/status", {"status": {"nominatedNodeName": "a"}})
        await cluster.server.patch(f"{PODS}/greater", {"spec": {"schedulingGates": None}})
        await create_pod(cluster, "small", cpu="2", tolerations=[{"operator": "Exists"}])
        async with asyncio.timeout(WAIT_TIMEOUT):
            while not (await cluster.server.get(f"{PODS}/small")).body["status"].get("conditions"):
                await yield_to_loop()
        assert await cluster.place("small") == "a"
        is_open.set()
        await cluster.manager.settle()
        assert await cluster.place("greater") == "b"
