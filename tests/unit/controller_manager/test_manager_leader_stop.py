"""How a leader stops: its keys are finished, and then it releases its lease."""

import asyncio

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.kinds import SECRETS
from mockube.client.leaderelection.elector import Elector, LeaderElectionConfig, Timings, lead
from mockube.component_base.clock import SteppedClock
from tests.support.controllers.candidates import LEASE, lease_spec, pass_time
from tests.support.controllers.manager_client import client_of
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.apiserver import running


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def client(clock):
    async with running(clock=clock) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        async with client_of(server.url, clock=clock) as client:
            yield client


async def test_current_keys_are_finished_before_lease_is_released(client, clock):
    ended = []

    async def work():
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await client.create(SECRETS, {"metadata": {"namespace": "default", "name": "last"}})
            ended.append((await lease_spec(client))["holderIdentity"])

    elector = Elector(
        LeaderElectionConfig(lease=LEASE, identity="a"), client, clock=clock, random=SeededRandom()
    )
    leading = asyncio.create_task(lead(elector, work, clock=clock, shutdown_timeout=10.0))
    await until(lambda: elector.is_leading)
    await yield_to_loop(3)
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    assert ended == ["a"]


async def test_work_that_does_not_end_in_time_is_cancelled(client, clock):
    cut = []

    async def work():
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cut.append(clock.monotonic())
                raise

    timings = Timings(lease_duration=60, renew_deadline=50)
    candidate = LeaderElectionConfig(lease=LEASE, identity="a", timings=timings)
    elector = Elector(candidate, client, clock=clock, random=SeededRandom())
    leading = asyncio.create_task(lead(elector, work, clock=clock, shutdown_timeout=10.0))
    await until(lambda: elector.is_leading)
    await yield_to_loop(3)
    leading.cancel()
    await yield_to_loop(5)
    await pass_time(clock, 12)
    await asyncio.gather(leading, return_exceptions=True)
    assert cut == [10.0]
    assert (await lease_spec(client)).get("holderIdentity", "") == ""


async def test_second_cancellation_cancels_keys_and_stops_renewal(client, clock):
    async def work():
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.get_running_loop().create_future()

    elector = Elector(
        LeaderElectionConfig(lease=LEASE, identity="a"), client, clock=clock, random=SeededRandom()
    )
    leading = asyncio.create_task(lead(elector, work, clock=clock, shutdown_timeout=10.0))
    await until(lambda: elector.is_leading)
    await yield_to_loop(3)
    for _ in range(2):
        leading.cancel()
        await yield_to_loop(3)
    await asyncio.gather(leading, return_exceptions=True)
    assert not {"work", "lease"} & {task.get_name() for task in asyncio.all_tasks()}


async def test_finished_work_releases_lease(client, clock):
    async def work():
        return

    elector = Elector(
        LeaderElectionConfig(lease=LEASE, identity="a"), client, clock=clock, random=SeededRandom()
    )
    await lead(elector, work, clock=clock, shutdown_timeout=10.0)
    assert (await lease_spec(client)).get("holderIdentity", "") == ""
