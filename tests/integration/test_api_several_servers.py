"""Several API servers on one real etcd: writes at one server are visible at all."""

import contextlib

import pytest

from mockube.component_base.clock import RealClock
from mockube.etcd.remote.store import RemoteStore
from tests.support.server import apiserver

pytestmark = pytest.mark.etcd

MAPS = "/api/v1/namespaces/default/configmaps"
SERVERS = 3
OBJECTS = 20


@pytest.fixture
async def clients(etcd_url):
    """Clients of separate servers, each with its own connection to the store."""
    async with contextlib.AsyncExitStack() as stack:
        opened = []
        for _ in range(SERVERS):
            kv = await RemoteStore.connect((etcd_url,), clock=RealClock())
            opened.append(await stack.enter_async_context(apiserver.running(kv=kv)))
        yield opened


async def test_list_at_one_server_includes_writes_of_another(clients):
    writer, _, reader = clients
    for index in range(OBJECTS):
        created = await writer.post(MAPS, {"metadata": {"name": f"m{index:02}"}})
        listed = await reader.get(MAPS)
        names = [item["metadata"]["name"] for item in listed.body["items"]]
        assert names == [f"m{number:02}" for number in range(index + 1)]
        assert int(listed.body["metadata"]["resourceVersion"]) >= int(
            created.body["metadata"]["resourceVersion"]
        )


async def test_watch_at_one_server_includes_writes_of_another(clients):
    writer, watcher, other = clients
    async with watcher.watch(f"{MAPS}?watch=1") as events:
        for index in range(OBJECTS):
            client = (writer, other)[index % 2]
            await client.post(MAPS, {"metadata": {"name": f"m{index:02}"}})
        received = [await anext(events) for _ in range(OBJECTS)]
    assert [event["object"]["metadata"]["name"] for event in received] == [
        f"m{number:02}" for number in range(OBJECTS)
    ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in received]
    assert versions == sorted(set(versions))


async def test_concurrent_updates_at_two_servers_conflict(clients):
    first, second, third = clients
    created = (await first.post(MAPS, {"metadata": {"name": "m"}})).body
    won = await second.put(f"{MAPS}/m", created | {"data": {"by": "second"}})
    lost = await third.put(f"{MAPS}/m", created | {"data": {"by": "third"}})
    assert (won.status, lost.status) == (200, 409)
    assert (await first.get(f"{MAPS}/m")).body["data"] == {"by": "second"}
