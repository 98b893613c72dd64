"""The clock of a server, and the clocks of other processes that follow it over the API."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import orjson
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.timestamps import format_micro_time
from mockube.client.clock_follower import ClockFollower
from mockube.client.connect import ClientOptions, connect
from mockube.client.kubeconfig import Access
from mockube.component_base.clock import ClusterClock, RealClock
from mockube.controller_manager.app import Manager
from mockube.controller_manager.catalog import NAMES
from mockube.controller_manager.command_line import parse
from tests.support.event_loop import until
from tests.support.server.apiserver import running, running_with_roles

PATH = "/mockube/clock"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
MAPS = "/api/v1/namespaces/default/configmaps"
NODE = "/api/v1/nodes/node-1"
NODE_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"


@pytest.fixture
def clock():
    return ClusterClock()


@pytest.fixture
async def client(clock):
    async with running(clock=clock) as client:
        yield client


@asynccontextmanager
async def readings(client):
    """Yield an iterator of the readings that a server streams."""
    async with client.session.get(client.url + PATH, headers=client.credentials) as answer:
        assert answer.status == 200

        async def lines():
            async for line in answer.content:
                yield orjson.loads(line)

        yield lines()


@asynccontextmanager
async def following(client):
    """Yield a clock that follows that of the server."""
    clock = ClusterClock()
    access = Access(server=client.url, token="admin")
    async with connect(ClientOptions(access=access, clock=RealClock())) as api_client:
        follower = ClockFollower(api_client, clock)
        task = asyncio.create_task(follower.run())
        await follower.wait_known()
        try:
            yield clock
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_stream_begins_with_a_reading_and_has_one_for_each_change(client, clock):
    async with readings(client) as stream:
        first = await anext(stream)
        assert (first["rate"], first["time"]) == (1.0, first["at"])
        clock.pause()
        assert (await anext(stream))["rate"] == 0.0
        clock.set_speed(10)
        clock.resume()
        assert (await anext(stream))["rate"] == 10.0


async def test_streams_end_when_the_server_stops(client):
    async with readings(client) as stream:
        await anext(stream)
        client.server.end_streams()
        assert [reading async for reading in stream] == []


async def test_stream_of_a_client_that_left_is_forgotten(client):
    async with readings(client) as stream:
        await anext(stream)
        assert len(client.server._fixed_pages.clock_streams._changed) == 1
    await until(lambda: not client.server._fixed_pages.clock_streams._changed)


async def test_other_methods_are_refused(client):
    answer = await client.post(PATH, {})
    assert answer.status == 405
    assert answer.body["message"] == "/mockube/clock supports GET, not POST"


async def test_users_without_the_right_cannot_follow_the_clock():
    async with running_with_roles() as client:
        client.credentials = {"Authorization": "Bearer alice"}
        assert (await client.get(PATH)).status == 403


async def test_server_on_a_clock_that_cannot_change_has_no_stream():
    async with running(clock=RealClock()) as client:
        assert (await client.get(PATH)).status == 404


async def test_followers_show_the_time_of_the_server(client, clock):
    clock.pause()  # a time that goes on would be late by what its way to the follower takes
    async with following(client) as first, following(client) as second:
        assert first.now() == second.now() == clock.now()
        clock.set_speed(2)
        clock.resume()
        await until(lambda: first.rate == second.rate == 2)
        clock.pause()
        clock.advance(3600)
        await until(lambda: first.now() == second.now() == clock.now())
        clock.set_speed(100)
        clock.resume()
        await until(lambda: first.rate == second.rate == 100)
        called = asyncio.Event()
        first.call_later(60, called.set)
        await called.wait()  # 0.6 seconds


async def test_deadline_of_a_request_is_real(client, clock):
    may_end = asyncio.Event()

    async def body():
        yield b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": '
        await may_end.wait()
        yield b'{"name": "slow"}}'

    sending = asyncio.create_task(client.send("POST", MAPS, body()))
    while 'inflight_requests{request_kind="mutating"} 1' not in (await client.get("/metrics")).data.decode():
        pass
    clock.advance(3600)
    may_end.set()
    assert (await sending).status == 201


async def test_end_of_a_watch_is_in_the_time_of_the_cluster(client, clock):
    async with client.watch(f"{MAPS}?watch=1&timeoutSeconds=3000") as events:
        await client.post(MAPS, {"metadata": {"name": "a"}})
        assert (await anext(events))["type"] == "ADDED"
        clock.advance(3001)
        assert [event async for event in events] == []


@asynccontextmanager
async def managing(client, *flags):
    """Run a manager on a clock of its own, as another process does."""
    config = parse(
        [
            f"--master={client.url}",
            "--simulate-nodes=1",
            "--secure-port=0",
            "--leader-elect-resource-namespace=kube-system",
            *flags,
        ],
        {},
        NAMES,
    )
    clock = ClusterClock()
    access = Access(server=client.url, token="admin")
    manager = Manager(config, clock=clock, random=SystemRandom(), follows=clock, access=access)
    task = asyncio.create_task(manager.run())
    try:
        yield clock
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def spec_of(client, path):
    return (await client.get(path)).body.get("spec") or {}


async def wait_for_renewal(client, path, *, after):
    """Wait until a Lease is renewed at a later time of the cluster."""
    async with client.watch(f"{path.rpartition('/')[0]}?watch=1") as events:
        async for event in events:
            lease = event["object"]
            if path.endswith(lease["metadata"]["name"]) and lease["spec"]["renewTime"] > after:
                return


async def test_manager_of_another_process_leads_through_pause_and_speed(clock):
    """Its leases last 15 and 40 seconds of the cluster, which pass in a tenth of the time, or not at all."""
    async with running(clock=clock) as client:
        for namespace in "kube-system", "kube-node-lease":
            await client.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        async with managing(client) as follower:
            began = format_micro_time(clock.now())
            await wait_for_renewal(client, NODE_LEASE, after="")
            clock.pause()
            await until(lambda: follower.rate == 0)
            clock.set_speed(10)
            clock.resume()
            await until(lambda: follower.rate == 10)
            later = format_micro_time(clock.now() + timedelta(seconds=20))
            for path in LEASE, NODE_LEASE:
                await wait_for_renewal(client, path, after=later)
            lease = await spec_of(client, LEASE)
            assert lease["leaseTransitions"] == 0
            assert lease["acquireTime"] < later
            assert began < lease["acquireTime"]
            conditions = (await client.get(NODE)).body["status"]["conditions"]
            assert {each["type"]: each["status"] for each in conditions}["Ready"] == "True"
