"""A controller that plans, in the runtime, at a real API server."""

import pytest

from apimachinery.clock import SteppedClock
from controller_manager.kinds import CONFIG_MAPS, EVENTS, SECRETS
from controller_manager.runtime.resource import Key
from tests.support.apiserver import running
from tests.support.copies import COPIES, parent
from tests.support.manager import running_manager


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


async def names(manager, resource):
    return [item["metadata"]["name"] for item in (await manager.client.list(resource, "default")).items]


async def test_what_is_wanted_is_made_once(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 5))
    await manager.settle()
    assert len(await names(manager, SECRETS)) == 5
    found = await manager.client.get(CONFIG_MAPS, Key("default", "a"))
    assert found["data"]["have"] == "5"


async def test_what_is_too_much_is_deleted(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 5))
    await manager.settle()
    await manager.client.patch(CONFIG_MAPS, Key("default", "a"), {"data": {"copies": "2"}})
    await manager.settle()
    assert len(await names(manager, SECRETS)) == 2


async def test_what_was_done_is_told(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 2))
    await manager.settle()
    events = (await manager.client.list(EVENTS, "default")).items
    assert {event["message"] for event in events} == {
        f"Created copy: {name}" for name in await names(manager, SECRETS)
    }
    assert {(event["reason"], event["source"]["component"], event["count"]) for event in events} == {
        ("SuccessfulCreate", "copies-controller", 1)
    }


async def test_nothing_is_written_once_it_is_quiet(manager):
    await manager.client.create(CONFIG_MAPS, parent("a", 3))
    await manager.settle()
    before = len(manager.transport.writes)
    await manager.step(3600)
    assert len(manager.transport.writes) == before
