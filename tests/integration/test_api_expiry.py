"""Events expire after their time to live; other objects do not."""

import pytest

from mockube.apiserver.storage.lease_manager import SHARED_SECONDS
from mockube.component_base.clock import SteppedClock
from tests.support.server import apiserver

TTL = 600
CORE = "/api/v1/namespaces/default/events"
GROUP = "/apis/events.k8s.io/v1/namespaces/default/events"
MAPS = "/api/v1/namespaces/default/configmaps"
EVENT = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "type": "Normal",
}


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def client(clock):
    async with apiserver.running(f"--event-ttl={TTL:g}s", clock=clock) as client:
        yield client


async def event_after(client, clock, path, seconds):
    """Advance the clock, and return the next event of a watch."""
    async with client.watch(f"{path}?watch=1&resourceVersion=0") as events:
        assert (await anext(events))["type"] == "ADDED"
        clock.advance(seconds)
        return (await anext(events))["type"]


async def test_event_expires_at_its_ttl(client, clock):
    await client.post(MAPS, {"metadata": {"name": "m"}})
    assert (await client.post(CORE, EVENT)).status == 201
    clock.advance(TTL - 1)
    assert (await client.get(f"{CORE}/e")).status == 200
    assert await event_after(client, clock, CORE, SHARED_SECONDS + 1) == "DELETED"
    assert (await client.get(f"{GROUP}/e")).status == 404
    assert (await client.get(f"{MAPS}/m")).status == 200


async def test_updated_event_gets_new_ttl(client, clock):
    await client.post(CORE, EVENT)
    clock.advance(TTL)
    assert (await client.patch(f"{CORE}/e", {"count": 2})).status == 200
    clock.advance(TTL)
    assert (await client.get(f"{CORE}/e")).body["count"] == 2
