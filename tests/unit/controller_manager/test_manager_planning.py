"""A controller that returns plans, in the controller runtime, with a real API server."""

import asyncio
from datetime import timedelta
from functools import partial
from itertools import count

import pytest
from msgspec.structs import replace

from mockube.client.kinds import CONFIG_MAPS, EVENTS, SECRETS
from mockube.client.resources import Key
from mockube.client.wire import OutcomeUnknown
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.control.actions import Plan
from mockube.controller_manager.control.controller import Watch
from tests.support.controllers.example_controller import COPIES, own_key, parent
from tests.support.controllers.running_manager import running_manager
from tests.support.event_loop import until, yield_to_loop
from tests.support.processes.failing_program import fail
from tests.support.server.apiserver import running

pytestmark = pytest.mark.thorough


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def server(clock):
    async with running(clock=clock) as server:
        yield server


@pytest.fixture
async def manager(server, clock):
    async with running_manager(server, clock, controllers=[COPIES]) as manager:
        yield manager


class LoseWrites:
    """Loses every n-th write of Secrets, or its response."""

    def __init__(self, every):
        self._every = every
        self._count = 0

    async def __call__(self, request):
        self._count += "secrets" in request.target
        if self._count % self._every == 0 and "secrets" in request.target:
            raise OutcomeUnknown("cut")


class UserAgentRecorder:
    """A transport that wraps another, and records the user of each list of Secrets."""

    def __init__(self, transport):
        self.transport = transport
        self.listed = []

    async def send(self, request, headers):
        if request.is_read and "secrets" in request.target:
            self.listed.append(headers["User-Agent"])
        return await self.transport.send(request, headers)

    def __getattr__(self, name):
        return getattr(self.transport, name)


class PausedInformer:
    """An informer that delivers no events until the test releases it."""

    def __init__(self, informer):
        self._informer = informer
        self._delayed_calls = []
        for name in ("put", "remove", "reach"):
            setattr(informer, name, partial(self._delay, getattr(informer, name)))

    def _delay(self, call, *arguments):
        self._delayed_calls.append(partial(call, *arguments))

    def release(self):
        for name in ("put", "remove", "reach"):
            delattr(self._informer, name)
        for call in self._delayed_calls:
            call()


def creations(manager):
    return sum(method == "POST" and "secrets" in target for method, target in manager.transport.writes)


COUNTED = 100_000
"""Objects that a reconciliation looks at: it is paced by 20 microseconds for each."""


def counting_controller(reconciled_at, clock):
    """Return a controller that looks at many Secrets whenever one changes, and the times of its reconciliations."""

    def reconcile(_, key, now):
        reconciled_at.append(clock.monotonic())
        return Plan(counted=COUNTED)

    watch = Watch(
        resource=SECRETS,
        keys=own_key,
        delay=timedelta(milliseconds=50),
        pause=timedelta(microseconds=20),
    )
    return replace(COPIES, watches=(watch,), indexes={}, reconcile=reconcile)


async def names(manager, resource):
    return [item["metadata"]["name"] for item in (await manager.client.list(resource, "default")).items]


async def test_desired_objects_are_created_once(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 5))
    await manager.settle()
    assert len(await names(manager, SECRETS)) == 5
    config_map = await manager.client.get(CONFIG_MAPS, Key("default", "a"))
    assert config_map["data"]["have"] == "5"


async def test_surplus_objects_are_deleted(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 5))
    await manager.settle()
    await manager.client.patch(CONFIG_MAPS, Key("default", "a"), {"data": {"copies": "2"}})
    await manager.settle()
    assert len(await names(manager, SECRETS)) == 2


async def test_actions_record_events(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 2))
    await manager.settle()
    events = (await manager.client.list(EVENTS, "default")).items
    assert {event["message"] for event in events} == {
        f"Created copy: {name}" for name in await names(manager, SECRETS)
    }
    assert {(event["reason"], event["source"]["component"], event["count"]) for event in events} == {
        ("SuccessfulCreate", "copies-controller", 1)
    }


async def test_unchanged_objects_cause_no_writes(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 3))
    await manager.settle()
    before = len(manager.transport.writes)
    await manager.step(3600)
    assert len(manager.transport.writes) == before


@pytest.mark.parametrize("every", [1, 2, 3, 7])
async def test_lost_responses_create_no_duplicates(manager, every):
    """The responses of every n-th write are lost; with 1, of every write until the transport recovers."""
    manager.transport.on_way_back = LoseWrites(every)
    await manager.client.create(CONFIG_MAPS, parent("a", 10))
    await manager.step(20)
    assert len(await names(manager, SECRETS)) == creations(manager) == 10


async def test_unknown_outcomes_are_resolved_by_client_that_may_list(manager):
    """A controller's account may be allowed to create objects that it may not list."""
    agents = manager.transport.transport = UserAgentRecorder(manager.transport.transport)
    manager.transport.on_way_back = LoseWrites(7)
    await manager.client.create(CONFIG_MAPS, parent("a", 10))
    await manager.step(20)
    assert agents.listed
    assert set(agents.listed) == {"kube-controller-manager"}


@pytest.mark.parametrize("every", [2, 3, 7])
async def test_lost_requests_are_retried(manager, every):
    manager.transport.before_request = LoseWrites(every)
    await manager.client.create(CONFIG_MAPS, parent("a", 10))
    await manager.step(60)
    assert len(await names(manager, SECRETS)) == 10
    assert creations(manager) > 10


async def test_no_plan_is_made_from_stale_cache(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 3))
    await manager.settle()
    paused_informer = PausedInformer(manager.work.informers.of(SECRETS))
    await manager.client.patch(CONFIG_MAPS, Key("default", "a"), {"data": {"copies": "5"}})
    await until(lambda: creations(manager) == 5)
    for number in range(5):
        await manager.client.patch(CONFIG_MAPS, Key("default", "a"), {"data": {"more": str(number)}})
    await yield_to_loop(200)
    assert creations(manager) == 5
    paused_informer.release()
    await manager.settle()
    assert len(await names(manager, SECRETS)) == creations(manager) == 5
    config_map = await manager.client.get(CONFIG_MAPS, Key("default", "a"))
    assert config_map["data"]["have"] == "5"


async def test_unobserved_write_is_awaited_five_minutes_at_most(manager, clock):
    paused_informer = PausedInformer(manager.work.informers.of(SECRETS))
    await manager.client.create(CONFIG_MAPS, parent("a", 1))
    await until(lambda: creations(manager) == 1)
    await manager.client.patch(CONFIG_MAPS, Key("default", "a"), {"data": {"more": "x"}})
    await yield_to_loop(200)
    clock.advance(299)
    await yield_to_loop(200)
    assert creations(manager) == 1
    clock.advance(2)
    await until(lambda: creations(manager) == 2)
    paused_informer.release()
    await manager.settle()
    assert len(await names(manager, SECRETS)) == 1


async def wait_until_failed_parked(server, clock):
    async with running_manager(server, clock, controllers=[COPIES]) as manager:
        (run,) = (task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "ManagerRun.run")
        PausedInformer(manager.work.informers.of(SECRETS))
        await manager.client.create(CONFIG_MAPS, parent("a", 1))
        await until(lambda: creations(manager) == 1)
        await manager.client.patch(CONFIG_MAPS, Key("default", "a"), {"data": {"more": "x"}})
        fail(asyncio.get_running_loop(), f"{COPIES.name}/parked")
        await until(run.done)
        assert "ExceptionGroup" in manager.work.problem(COPIES.name)


async def test_failed_wait_for_own_writes_ends_manager_and_is_named(server, clock, caplog):
    with pytest.raises(AssertionError, match="the manager ended by itself"):
        await wait_until_failed_parked(server, clock)
    (entry,) = (text for text in map(caplog.handler.format, caplog.records) if "failed" in text)
    assert f"{COPIES.name}/parked failed" in entry
    assert "Traceback (most recent call last)" in entry


@pytest.mark.parametrize("after", range(1, 8))
async def test_restart_after_any_write_creates_no_duplicates(server, clock, after):
    """Five copies must be created, and one write reports them in the status."""
    killed, done = asyncio.Event(), count(1)

    async def kill(_):
        if next(done) >= after:
            killed.set()
            await asyncio.get_running_loop().create_future()

    async with running_manager(server, clock, controllers=[COPIES]) as first:
        await first.client.create(CONFIG_MAPS, parent("a", 5))
        first.transport.on_way_back = kill
        await killed.wait()
    async with running_manager(server, clock, controllers=[COPIES]) as second:
        await second.step(10)
        assert len(await names(second, SECRETS)) == creations(first) + creations(second) == 5
        config_map = await second.client.get(CONFIG_MAPS, Key("default", "a"))
        assert config_map["data"]["have"] == "5"


async def test_controller_that_looks_at_many_objects_waits_longer_for_the_next_change(server, clock):
    reconciled_at = []
    controller = counting_controller(reconciled_at, clock)
    async with running_manager(server, clock, controllers=[controller]) as manager:
        await manager.client.create(SECRETS, {"metadata": {"name": "a", "namespace": "default"}})
        await manager.step(1)
        changed_at = clock.monotonic()
        await manager.client.patch(SECRETS, Key("default", "a"), {"metadata": {"labels": {"a": "b"}}})
        await manager.step(5)
    assert reconciled_at[1:] == [pytest.approx(changed_at + 2)]
