"""The server's limits on concurrent requests and on their duration."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.group_commit import PROBE_SECONDS
from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.server import apiserver
from tests.support.stores.disks import FaultyDisk

MAPS = "/api/v1/namespaces/default/configmaps"
ALICE = {"Authorization": "Bearer alice"}


class BlockedBody(AsyncIterator):
    """A body that starts and does not end until it is released."""

    def __init__(self):
        self.begun, self.going = asyncio.Event(), asyncio.Event()
        self._parts = [b'{"metadata":', b'{"name":"slow"}}']

    async def __anext__(self):
        if not self._parts:
            raise StopAsyncIteration
        if len(self._parts) == 1:
            self.begun.set()
            await self.going.wait()
        return self._parts.pop(0)


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def client(clock):
    flags = "--max-requests-inflight=1", "--max-mutating-requests-inflight=1"
    async with apiserver.running(*flags, clock=clock) as client:
        yield client


async def start_hanging_write(client):
    """A write that is in flight until its body is released."""
    body = BlockedBody()
    answer = asyncio.create_task(client.send("POST", MAPS, body))
    await body.begun.wait()
    while (await client.post(f"{MAPS}?dryRun=All", {"metadata": {"name": "x"}}, **ALICE)).status != 429:
        pass
    return body, answer


async def test_request_beyond_limit_is_429_with_retry_after(client):
    body, answer = await start_hanging_write(client)
    refused = await client.post(MAPS, {"metadata": {"name": "a"}}, **ALICE)
    assert (refused.status, refused.data) == (429, b"Too many requests, please try again later.\n")
    assert refused.headers["Retry-After"] == "1"
    assert (await client.get(MAPS, **ALICE)).status == 200
    assert (await client.post(MAPS, {"metadata": {"name": "b"}})).status == 201
    body.going.set()
    assert (await answer).status == 201
    assert (await client.post(MAPS, {"metadata": {"name": "a"}}, **ALICE)).status == 201


async def test_request_beyond_deadline_times_out(client, clock):
    body, answer = await start_hanging_write(client)
    clock.advance(60)
    late = await answer
    assert (late.status, late.body["reason"]) == (504, "Timeout")
    assert late.body["message"] == "Timeout: request did not complete within the allotted timeout"
    body.going.set()


async def test_watches_have_no_limit_and_no_deadline(client, clock):
    watch = f"{MAPS}?watch=true"
    async with client.watch(watch, **ALICE) as first, client.watch(watch, **ALICE) as second:
        clock.advance(120)
        await client.post(MAPS, {"metadata": {"name": "a"}})
        names = [(await anext(events))["object"]["metadata"]["name"] for events in (first, second)]
    assert names == ["a", "a"]


async def test_full_disk_fails_readiness_until_it_has_space(tmp_path):
    disk, clock = FaultyDisk(), SteppedClock()
    store = await DurableStore.open(tmp_path, clock=clock, disk=disk)
    async with apiserver.running(kv=store) as client:
        assert (await client.get("/readyz")).status == 200
        disk.leave_room(0)
        refused = await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
        assert (refused.status, refused.body["message"]) == (
            500,
            "the store cannot be written: No space left on device",
        )
        ready = await client.get("/readyz")
        assert (ready.status, b"[-]etcd-readiness failed: reason withheld" in ready.data) == (500, True)
        check = await client.get("/readyz/etcd-readiness")
        assert (check.status, check.data) == (500, b"internal server error: No space left on device\n")
        assert (await client.get("/livez")).status == 200
        disk.leave_room(None)
        async with asyncio.timeout(WAIT_TIMEOUT):
            while (await client.get("/readyz")).status != 200:
                clock.advance(PROBE_SECONDS)
        created = await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
        assert created.status == 201
