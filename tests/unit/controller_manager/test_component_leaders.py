"""Static pods as candidates for the Lease of their program, with a real API server on a stepped clock."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.kinds import LEASES
from mockube.client.leaderelection.elector import Timings
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.component_leaders import ComponentElection, ComponentRunner, ElectedComponent
from mockube.kubelet.running_programs import RunningPrograms
from tests.support.controllers.manager_client import client_of
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.apiserver import running

PROGRAM = "kube-scheduler"
LEASE = Key("kube-system", PROGRAM)


class Part:
    """A part of the program, for one time that it leads."""

    def __init__(self, parts):
        self.works = False
        parts.append(self)

    async def run(self):
        self.works = True
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.works = False


class Recorder:
    def __init__(self):
        self.messages = []

    def record(self, _about, _type, _reason, message):
        self.messages.append(message)


class Elected:
    """A program with its static pods."""

    def __init__(self, client, clock, *, releases=True, is_enabled=True, nodes=()):
        self.client, self.clock = client, clock
        self.programs, self.parts, self.recorder = RunningPrograms(), [], Recorder()
        component = ElectedComponent(
            program=PROGRAM, lease=LEASE, releases=releases, parts=frozenset({"part"}), nodes=nodes
        )
        election = ComponentElection(
            is_enabled=is_enabled,
            timings=Timings(),
            client=client,
            clock=clock,
            random=SeededRandom(1),
            metrics=MetricsRegistry(),
            shutdown_timeout=10.0,
        )
        self.runner = ComponentRunner(
            component,
            lambda: {"part": Part(self.parts)},
            election,
            self.programs,
            self.recorder,
            lambda *_: None,
        )

    def set(self, node, restarts=0):
        self.programs.set(node, {PROGRAM: restarts})

    @property
    def works(self):
        return [part.works for part in self.parts]

    async def holder(self):
        return (await self.client.get(LEASES, LEASE))["spec"]["holderIdentity"]

    async def pass_seconds(self, seconds):
        for _ in range(seconds * 2):
            self.clock.advance(0.5)
            await yield_to_loop(50)


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def client(clock):
    async with running(clock=clock) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        async with client_of(server.url, clock=clock) as client:
            yield client


@asynccontextmanager
async def elected(client, clock, **options):
    each = Elected(client, clock, **options)
    task = asyncio.create_task(each.runner.run())
    try:
        yield each
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_program_works_while_a_static_pod_runs(client, clock):
    async with elected(client, clock) as program:
        await yield_to_loop(50)
        assert program.works == [False]
        program.set("a")
        await until(lambda: program.works == [True])
        assert (await program.holder()).startswith("a_")
        assert program.recorder.messages == [f"{await program.holder()} became leader"]
        program.programs.set("a", {})
        await until(lambda: program.works == [False])


async def test_restarted_container_leads_with_new_parts_and_another_name(client, clock):
    async with elected(client, clock) as program:
        program.set("a")
        await until(lambda: program.works == [True])
        first = await program.holder()
        program.set("a", restarts=1)
        await until(lambda: program.works == [False, True])
        assert await program.holder() != first


async def test_other_node_takes_over_when_a_lease_that_is_not_released_expires(client, clock):
    async with elected(client, clock, releases=False) as program:
        program.set("a")
        await until(lambda: program.works == [True])
        program.set("b")
        await program.pass_seconds(5)
        program.programs.set("a", {})
        await until(lambda: program.works == [False])
        await program.pass_seconds(10)
        assert program.works == [False]
        await program.pass_seconds(12)
        await until(lambda: program.works == [False, True])
        assert (await program.holder()).startswith("b_")


async def test_manager_that_starts_again_goes_on_with_the_lease_of_a_node(client, clock):
    async with elected(client, clock, releases=False) as program:
        program.set("a")
        await until(lambda: program.works == [True])
        first = await program.holder()
    async with elected(client, clock, releases=False) as program:
        program.set("a")
        await until(lambda: program.works == [True])
        assert await program.holder() == first


async def test_without_leader_election_a_running_pod_suffices(client, clock):
    async with elected(client, clock, is_enabled=False) as program:
        program.set("a")
        await until(lambda: program.works == [True])
        assert [item["metadata"]["name"] for item in (await client.list(LEASES)).items] == []


async def test_new_cluster_does_not_wait_for_its_static_pods(client, clock):
    async with elected(client, clock, nodes=("a",)) as program:
        await until(lambda: program.works == [True])
        program.set("a")
        await yield_to_loop(50)
        assert program.works == [True]
    async with elected(client, clock, nodes=("a",)) as program:
        await yield_to_loop(200)
        assert program.works == [False]
