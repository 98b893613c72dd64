"""A lease that is renewed after its deadline: the leader continues with its caches if nobody else has held the lease."""

import asyncio

import pytest

from mockube.client.kinds import LEASES, SECRETS
from mockube.client.leaderelection.elector import LeaseLost
from mockube.client.wire import Unreachable
from mockube.component_base.clock import SteppedClock
from tests.support.controllers.candidates import LEASE, Candidacy, lease_spec, pass_time
from tests.support.controllers.manager_client import client_of
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.apiserver import running

pytestmark = pytest.mark.thorough


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def server(clock):
    async with running(clock=clock) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        yield server


@pytest.fixture
async def client(server, clock):
    async with client_of(server.url, clock=clock) as client:
        yield client


@pytest.fixture
async def start(client, clock):
    """Start candidates, and cancel them at the end."""
    started = []

    async def start_one(identity, **options):
        candidate = Candidacy(client, clock, identity, **options)
        started.append(candidate)
        candidate.start()
        await until(lambda: candidate.elector.lease)
        await until(lambda: candidate.works or len(started) > 1)
        return candidate

    yield start_one
    for candidate in started:
        candidate.line.pass_requests()  # so that the lease can be released
        candidate.task.cancel()
    await asyncio.gather(*(candidate.task for candidate in started), return_exceptions=True)


async def suspend(clock, seconds, candidate):
    """Advance the clock at once, as for a process that was stopped, and let the candidate finish its requests."""
    clock.advance(seconds)
    await pass_time(clock, 0.5, [candidate])


# --- renewals


async def test_renewal_is_a_single_request(start, clock):
    leader = await start("a")
    del leader.line.verbs[:]
    await pass_time(clock, 20, [leader])
    assert set(leader.line.verbs) == {"update"}
    assert len(leader.line.verbs) >= 9


async def test_renewal_of_lease_that_another_client_changed_reads_it_first(start, client, clock):
    leader = await start("a")
    lease = await client.get(LEASES, LEASE)
    await client.update(LEASES, {**lease, "metadata": lease["metadata"] | {"labels": {"seen": "yes"}}})
    await pass_time(clock, 20, [leader])
    assert (leader.works, leader.starts) == (True, 1)
    assert (await client.get(LEASES, LEASE))["metadata"]["labels"] == {"seen": "yes"}
    assert leader.elector.may_write()


# --- any candidate


async def test_suspended_leader_continues_if_its_lease_was_not_taken(start, client, clock):
    leader = await start("a")
    acquired = (await lease_spec(client))["acquireTime"]
    await suspend(clock, 20, leader)
    assert (leader.works, leader.starts, leader.elector.may_write()) == (True, 1, True)
    spec = await lease_spec(client)
    assert (spec["acquireTime"], spec["leaseTransitions"]) == (acquired, 0)


async def test_suspended_leader_stops_if_another_took_its_lease(start, client, clock):
    leader = await start("a")
    lease = await client.get(LEASES, LEASE)
    taken = {**lease["spec"], "holderIdentity": "somebody", "leaseTransitions": 1}
    await client.update(LEASES, {**lease, "spec": taken})
    await suspend(clock, 20, leader)
    with pytest.raises(LeaseLost):
        await leader.task
    assert (await lease_spec(client))["holderIdentity"] == "somebody"


async def test_leader_stops_if_another_took_and_released_its_lease(start, client, clock):
    """The other one may have written, and the leader's decisions do not know of it."""
    leader = await start("a")
    lease = await client.get(LEASES, LEASE)
    released = {**lease["spec"], "holderIdentity": "", "leaseTransitions": 1}
    await client.update(LEASES, {**lease, "spec": released})
    await pass_time(clock, 3, [leader])
    with pytest.raises(LeaseLost):
        await leader.task


async def test_late_renewal_without_response_ends_before_lease_expires(start, clock):
    leader = await start("a")
    leader.line.hold_requests()
    await pass_time(clock, 14.5, [leader])
    assert leader.task.done()
    with pytest.raises(LeaseLost):
        await leader.task


# --- the sole candidate


async def test_sole_leader_keeps_its_work_until_connection_is_restored(start, client, clock):
    leader = await start("a", is_sole=True)
    acquired = (await lease_spec(client))["acquireTime"]
    leader.line.is_cut = True
    await pass_time(clock, 300, [leader])
    assert (leader.works, leader.elector.may_write()) == (True, False)
    leader.line.is_cut = False
    await pass_time(clock, 6, [leader])
    assert (leader.works, leader.starts, leader.elector.may_write()) == (True, 1, True)
    assert (await lease_spec(client))["acquireTime"] == acquired


async def test_sole_leader_gives_slow_server_more_time(start, clock):
    """Each attempt that is given up is repeated with twice the time."""
    leader = await start("a", is_sole=True)
    leader.line.hold_requests()
    await pass_time(clock, 60, [leader])
    attempts = leader.line.held
    await pass_time(clock, 50, [leader])
    assert leader.line.held <= attempts + 2
    assert leader.works


async def test_sole_leader_stops_if_another_took_its_lease(start, clock):
    first = await start("a", is_sole=True)
    second = await start("second")
    first.line.is_cut = True

    def one_may_write():
        assert not (first.elector.may_write() and second.elector.may_write())

    await pass_time(clock, 25, [first, second], check=one_may_write)
    assert (first.works, second.works) == (True, True)
    first.line.is_cut = False
    await pass_time(clock, 6, [first, second], check=one_may_write)
    with pytest.raises(LeaseLost):
        await first.task
    assert (first.works, second.works) == (False, True)


@pytest.fixture
async def suspended(start, clock):
    """A sole leader whose lease is not valid."""
    leader = await start("a", is_sole=True)
    leader.line.is_cut = True
    await pass_time(clock, 12, [leader])
    assert not leader.elector.may_write()
    return leader


@pytest.fixture
async def worker(server, clock, suspended):
    elector = suspended.elector
    options = {"may_write": elector.may_write, "wait_until_renewed": elector.wait_until_renewed}
    async with client_of(server.url, clock=clock, **options) as worker:
        yield worker


SECRET = {"metadata": {"namespace": "default", "name": "one"}}


async def test_write_waits_for_late_renewal(suspended, worker, client, clock):
    writing = asyncio.create_task(worker.create(SECRETS, SECRET))
    await pass_time(clock, 5, [suspended])
    assert not writing.done()
    assert (await worker.list(SECRETS, "default")).items == []
    suspended.line.is_cut = False
    await pass_time(clock, 6, [suspended])
    await writing
    assert len((await client.list(SECRETS, "default")).items) == 1


async def test_waiting_write_fails_if_lease_is_lost(suspended, worker, client, clock):
    writing = asyncio.create_task(worker.create(SECRETS, SECRET))
    await yield_to_loop(5)
    lease = await client.get(LEASES, LEASE)
    await client.update(LEASES, {**lease, "spec": lease["spec"] | {"holderIdentity": "somebody"}})
    suspended.line.is_cut = False
    await pass_time(clock, 6, [suspended])
    with pytest.raises(Unreachable, match="the lease is lost"):
        await writing
    assert (await client.list(SECRETS, "default")).items == []
