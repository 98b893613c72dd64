"""The scheduler as a whole: what it waits for, what it does with one pod after the other, and how it ends."""

import asyncio
import contextlib

import pytest
from msgspec.structs import replace

from mockube.apimachinery.randomness import SeededRandom
from mockube.client import kinds
from mockube.scheduler import watched
from mockube.scheduler.config.extender_access import access_of
from mockube.scheduler.config.types import Extender
from mockube.scheduler.profiles import DEFAULT_SETTINGS
from mockube.scheduler.scheduler import Scheduler
from tests.support.controllers.informers import fill
from tests.support.controllers.scheduler_objects import info, node, pod
from tests.support.controllers.scheduler_parts import RecordingClient, SchedulerContext
from tests.support.event_loop import yield_to_loop
from tests.support.metric_samples import sample_value

RESOURCES = (kinds.PODS, *watched.WATCHED)
NEEDED = (
    kinds.PODS,
    kinds.NODES,
    kinds.NAMESPACES,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.SERVICES,
    kinds.REPLICA_SETS,
    kinds.REPLICATION_CONTROLLERS,
    kinds.STATEFUL_SETS,
    kinds.CSI_DRIVERS,
    kinds.CSI_NODES,
    kinds.CSI_STORAGE_CAPACITIES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.STORAGE_CLASSES,
    kinds.VOLUME_ATTACHMENTS,
)
"""What decisions are made from."""


def sync(context, *resources):
    for resource in resources or RESOURCES:
        fill(context.informers.of(resource), [], 1)


@contextlib.asynccontextmanager
async def running(context, settings=DEFAULT_SETTINGS):
    scheduler = Scheduler(context.context, settings)
    task = asyncio.create_task(scheduler.run())
    await yield_to_loop(3)
    try:
        yield scheduler
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def context():
    return SchedulerContext()


def metric(context, name, **labels):
    return sample_value(context.context.metrics.registry, f"scheduler_{name}", labels)


async def test_pods_are_scheduled_once_everything_is_known(context):
    context.put_nodes(node("a"))
    context.put(pod("web"))
    async with running(context):
        for resource in NEEDED:
            await yield_to_loop(3)
            assert context.client.requests == []
            trees = [resource.tree(each) for each in context.informers.of(resource).lister.all()]
            fill(context.informers.of(resource), trees, 1)
        await yield_to_loop(20)
        assert context.recorded.reasons == [("web", "Scheduled")]


class Defective(SeededRandom):
    """A source of randomness that fails the first time."""

    def bytes(self, count):
        drawn = super().bytes(count)
        if self._draws == 1:
            raise ValueError("a defect")
        return drawn


async def test_decision_that_fails_is_logged_and_tried_again_while_others_go_on(context, caplog):
    context.context = replace(context.context, random=Defective())
    sync(context)
    context.put_nodes(node("a"))
    async with running(context):
        context.put(pod("web"), pod("other"))
        await yield_to_loop(20)
        assert context.recorded.reasons == [("other", "Scheduled")]
        assert "default/web: scheduling failed and is retried" in caplog.text
        assert context.context.metrics.task_restarts.of("scheduler/schedule").value == 1
        context.clock.advance(1)
        await yield_to_loop(20)
        assert context.recorded.reasons[1:] == [("web", "Scheduled")]


class SlowClient(RecordingClient):
    """A client whose requests wait until they are let go."""

    def __init__(self):
        super().__init__()
        self.go = asyncio.Event()

    async def create(self, resource, body, **_):
        self.requests.append(("create", resource.plural, body))
        await self.go.wait()


async def test_decisions_wait_for_a_slot_of_32_bindings(context):
    client = SlowClient()
    context.context = replace(context.context, client=client)
    sync(context)
    context.put_nodes(node("a", pods="99"))
    async with running(context):
        context.put(*(pod(f"web-{number}") for number in range(40)))
        await yield_to_loop(200)
        assert len(client.requests) == 32
        client.go.set()
        await yield_to_loop(200)
        assert len(client.requests) == 40


async def test_pods_without_node_take_no_slots(context):
    sync(context)
    async with running(context):
        context.put(*(pod(f"web-{number}") for number in range(40)))
        await yield_to_loop(400)
        assert len(context.recorded.events) == 40


async def test_end_waits_for_the_bindings_that_are_sent(context):
    client = SlowClient()
    context.context = replace(context.context, client=client)
    sync(context)
    context.put_nodes(node("a"))
    context.put(pod("web"))
    task = asyncio.create_task(Scheduler(context.context).run())
    await yield_to_loop(10)
    task.cancel()
    await yield_to_loop(10)
    assert not task.done()
    client.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert context.recorded.reasons == [("web", "Scheduled")]


class Extenders:
    """What takes the place of extenders: it is only closed."""

    def __init__(self):
        self.is_closed = False

    async def close(self):
        self.is_closed = True


async def test_extenders_are_closed_at_the_end(context):
    sync(context)
    async with running(context) as scheduler:
        scheduler._extenders = extenders = Extenders()
    assert extenders.is_closed


async def test_warnings_of_the_settings_are_logged(context, caplog):
    Scheduler(context.context, replace(DEFAULT_SETTINGS, warnings=("x has no effect",)))
    assert "--scheduler-config: x has no effect" in caplog.text


async def test_state_is_reported_when_metrics_are_read_until_the_end(context):
    sync(context)
    context.put_nodes(node("a", cpu="1"))
    async with running(context):
        gates = [{"name": "g"}]
        context.put(pod("large", requests={"cpu": "2"}), pod("gated", schedulingGates=gates))
        await yield_to_loop(20)
        context.context.metrics.registry.collect()
        queues = {name: metric(context, "pending_pods", queue=name) for name in ("unschedulable", "gated")}
        assert queues == {"unschedulable": 1, "gated": 1}
        rejected = {"plugin": "NodeResourcesFit", "profile": "default-scheduler"}
        assert metric(context, "unschedulable_pods", **rejected) == 1
        assert metric(context, "cache_size", type="nodes") == 1
    context.put_nodes(node("b"))
    context.context.metrics.registry.collect()
    assert metric(context, "cache_size", type="nodes") == 1


async def test_extenders_of_the_settings_are_used(context):
    assert Scheduler(context.context)._extenders is None
    extenders = (access_of(Extender(url_prefix="http://a", bind_verb="bind")),)
    other = Scheduler(SchedulerContext().context, replace(DEFAULT_SETTINGS, extenders=extenders))
    assert other._extenders.has_binder(info(pod()))
