"""Leader election of two managers on one clock and a real API server: one leads, and the other takes over."""

import asyncio
import contextlib

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.timestamps import format_micro_time
from mockube.client.kinds import LEASES, SECRETS
from mockube.client.leaderelection.elector import (
    HEALTH_CHECK_TOLERANCE,
    Elector,
    LeaderElectionConfig,
    LeaseLost,
    Timings,
    lead,
)
from mockube.client.wire import Unreachable
from mockube.component_base.clock import SteppedClock
from tests.support.controllers.candidates import LEASE, Candidacy, lease_spec, pass_time
from tests.support.controllers.manager_client import client_of
from tests.support.event_loop import until, yield_to_loop
from tests.support.processes.failing_program import fail
from tests.support.server.apiserver import running


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
async def candidates(client, clock):
    candidates = Candidacy(client, clock, "first"), Candidacy(client, clock, "second-one")
    yield candidates
    for candidate in candidates:
        candidate.task.cancel()
    await asyncio.gather(*(candidate.task for candidate in candidates), return_exceptions=True)


async def start(candidates):
    """Start both candidates; the first acquires the lease, and the second observes it."""
    first, second = candidates
    first.start()
    await until(lambda: first.works)
    second.start()
    await until(lambda: second.elector.lease)
    return first, second


def secret(name):
    return {"metadata": {"namespace": "default", "name": name}}


async def test_leader_works_while_it_renews(client, clock, candidates):
    first, second = await start(candidates)
    before = clock.now()

    def one_works():
        assert (first.works, second.works) == (True, False)

    await pass_time(clock, 60, candidates, check=one_works)
    now = await lease_spec(client)
    assert now["holderIdentity"] == "first"
    assert now["leaseDurationSeconds"] == 15
    assert now["leaseTransitions"] == 0
    assert now["acquireTime"] == format_micro_time(before)
    assert now["renewTime"] > format_micro_time(before)


async def test_stopped_leader_releases_lease_and_other_starts_at_once(client, clock, candidates):
    first, second = await start(candidates)
    first.task.cancel()
    await asyncio.gather(first.task, return_exceptions=True)
    assert not first.works
    assert (await lease_spec(client)).get("holderIdentity", "") == ""
    assert (await lease_spec(client))["leaseDurationSeconds"] == 1
    await pass_time(clock, 5, candidates)
    assert second.works
    assert (await lease_spec(client))["leaseTransitions"] == 1


async def test_disconnected_leader_stops_at_deadline_before_other_starts(clock, candidates):
    first, second = await start(candidates)
    await pass_time(clock, 6, candidates)
    first.line.is_cut = True
    cut = clock.monotonic()
    stopped, began = [], []

    def note():
        assert not (first.works and second.works)
        if not first.elector.may_write() and not stopped:
            stopped.append(clock.monotonic() - cut)
        if second.works and not began:
            began.append(clock.monotonic() - cut)

    await pass_time(clock, 30, candidates, check=note)
    assert not first.works
    with pytest.raises(LeaseLost):
        await first.task
    # The last renewal was up to two seconds before the cut; tries of the second are up to 4.4 seconds apart.
    assert 7.5 <= stopped[0] <= 10
    assert 12.5 <= began[0] <= 15 + 4.5
    assert began[0] > stopped[0]


async def test_suspended_leader_writes_nothing_after_deadline(clock, candidates):
    """As a stopped process that continues: nothing has run since, and the clock has advanced."""
    first, _ = await start(candidates)
    assert first.elector.may_write()
    clock.advance(11)
    assert not first.elector.may_write()


@pytest.fixture
async def held_manager(client, clock):
    """A manager whose first request for the lease is held."""
    manager = Candidacy(client, clock, "held")
    manager.line.hold_requests()
    manager.start()
    await until(lambda: manager.line.held == 1)
    yield manager
    manager.task.cancel()
    await asyncio.gather(manager.task, return_exceptions=True)


async def test_lease_is_valid_from_request_not_from_response(held_manager, clock):
    clock.advance(3)
    held_manager.line.gate.set()
    await until(lambda: held_manager.works)
    clock.advance(6.5)
    assert held_manager.elector.may_write()
    clock.advance(1)
    assert not held_manager.elector.may_write()


async def test_request_without_response_is_given_up_and_repeated(held_manager, clock):
    held_manager.line.pass_requests()
    await pass_time(clock, 4.5, [held_manager])
    assert not held_manager.works
    await pass_time(clock, 5, [held_manager])
    assert held_manager.works


async def test_no_write_arrives_after_deadline(server, client, clock, candidates):
    first, second = await start(candidates)
    async with client_of(server.url, clock=clock, may_write=first.elector.may_write) as worker:
        await worker.create(SECRETS, secret("in-time"))
        first.line.is_cut = True
        await pass_time(clock, 11, candidates)
        assert not second.works
        with pytest.raises(Unreachable, match="the lease is lost"):
            await worker.create(SECRETS, secret("too-late"))
        listed = (await worker.list(SECRETS, "default")).items
    assert [item["metadata"]["name"] for item in listed] == ["in-time"]


async def test_connection_restored_in_time_changes_nothing(clock, candidates):
    first, second = await start(candidates)
    await pass_time(clock, 6, candidates)
    first.line.is_cut = True
    await pass_time(clock, 6, candidates)
    first.line.is_cut = False
    await pass_time(clock, 30, candidates)
    assert (first.works, second.works) == (True, False)


async def test_taken_lease_is_lost_at_once(client, clock, candidates):
    first, second = await start(candidates)
    lease = await client.get(LEASES, LEASE)
    taken = {**lease["spec"], "holderIdentity": "somebody"}
    await client.update(LEASES, {**lease, "spec": taken})
    await pass_time(clock, 5, candidates)
    assert not first.works
    with pytest.raises(LeaseLost):
        await first.task
    assert (await lease_spec(client))["holderIdentity"] == "somebody"
    assert not second.works


async def test_deleted_lease_is_recreated(client, clock, candidates):
    first, _ = await start(candidates)
    await client.delete(LEASES, LEASE)
    await pass_time(clock, 5, candidates)
    found = await lease_spec(client)
    assert found["holderIdentity"] in ("first", "second-one")
    assert [first.works, candidates[1].works] == [
        found["holderIdentity"] == "first",
        found["holderIdentity"] == "second-one",
    ]


async def test_lost_lease_is_no_failure(clock, candidates, caplog):
    first, _ = await start(candidates)
    first.line.is_cut = True
    await pass_time(clock, 11, candidates)
    with pytest.raises(LeaseLost):
        await first.task
    assert not [record for record in caplog.records if record.exc_info]
    assert first.elector.problem() == ""


class UncancellableManager(Candidacy):
    """A manager whose work ignores cancellations until `may_end` is set."""

    async def _work(self):
        self.may_end = asyncio.Event()
        while not self.may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.may_end.wait()


@pytest.fixture
async def uncancellable(client, clock):
    manager = UncancellableManager(client, clock, "stubborn")
    manager.start()
    await until(lambda: manager.elector.is_leading)
    yield manager
    manager.may_end.set()  # before that the event loop cannot be closed
    await asyncio.gather(manager.task, return_exceptions=True)


async def test_leader_that_works_beyond_its_lease_is_unhealthy(uncancellable, clock):
    """It would neither be the leader again nor end, so that a supervisor has to end it."""
    await pass_time(clock, 10, [uncancellable])
    assert uncancellable.elector.problem() == ""
    uncancellable.line.is_cut = True
    await pass_time(clock, 15 + HEALTH_CHECK_TOLERANCE - 2, [uncancellable])
    assert (uncancellable.elector.problem(), uncancellable.task.done()) == ("", False)
    await pass_time(clock, 3, [uncancellable])
    assert uncancellable.elector.problem() == "failed election to renew leadership on lease manager"
    uncancellable.may_end.set()
    with pytest.raises(LeaseLost):
        await uncancellable.task
    assert uncancellable.elector.problem() == ""


async def test_failed_work_releases_lease(client, clock):
    async def fail():
        raise ValueError("why")

    elector = Elector(
        LeaderElectionConfig(lease=LEASE, identity="a"), client, clock=clock, random=SeededRandom()
    )
    with pytest.raises(ValueError, match="why"):
        await lead(elector, fail, clock=clock, shutdown_timeout=10.0)
    assert (await lease_spec(client)).get("holderIdentity", "") == ""


async def test_failed_renewal_cancels_work_and_releases_lease(client, clock, caplog):
    began, events = asyncio.Event(), []

    async def work():
        began.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            events.append("the work ends")

    def on_failure(name, error):
        events.append(f"{name} failed: {error}")

    elector = Elector(
        LeaderElectionConfig(lease=LEASE, identity="a"), client, clock=clock, random=SeededRandom()
    )
    leading = asyncio.create_task(
        lead(elector, work, clock=clock, shutdown_timeout=10.0, on_failure=on_failure)
    )
    await began.wait()
    fail(asyncio.get_running_loop(), "lease")
    with pytest.raises(RuntimeError, match="a fault in the program"):
        await leading
    assert events == ["lease failed: a fault in the program", "the work ends"]
    assert (await lease_spec(client)).get("holderIdentity", "") == ""
    (entry,) = (text for text in map(caplog.handler.format, caplog.records) if "lease failed" in text)
    assert "Traceback (most recent call last)" in entry


class SlowManager(Candidacy):
    """A manager whose work uses all the time that it gets to finish."""

    finished_at = None

    async def _work(self):
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.finished_at = self._clock.monotonic()


async def test_work_gets_no_time_to_finish_after_lease_is_lost(client, clock):
    """Another manager may have begun."""
    manager = SlowManager(client, clock, "slow")
    manager.start()
    await until(lambda: manager.elector.is_leading)
    manager.line.is_cut = True
    while manager.elector.is_leading:
        await pass_time(clock, 0.5, [manager])
    await pass_time(clock, 0.5, [manager])
    assert manager.finished_at is not None
    with pytest.raises(LeaseLost):
        await manager.task


async def test_release_without_response_is_given_up(client, clock):
    manager = Candidacy(client, clock, "patient")
    manager.start()
    await until(lambda: manager.elector.is_leading)
    await yield_to_loop(5)
    manager.line.hold_requests()
    manager.task.cancel()
    await until(lambda: manager.line.held)
    await pass_time(clock, Timings().renew_deadline, [manager])
    assert manager.task.done()
