"""A whole manager with a real API server: it leads or works without a lease, and follows the server."""

import asyncio
import contextlib

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.connection_options import ClientConnectionOptions
from mockube.client.kubeconfig import Access
from mockube.component_base.clock import ClusterClock, SteppedClock
from mockube.controller_manager.app import Manager
from mockube.controller_manager.config.features import Features
from mockube.controller_manager.config.settings import Config, Controllers, LeaderElection
from mockube.controller_manager.control.followed_server import UnusableFlags
from tests.support.controllers.running_manager import kill
from tests.support.event_loop import yield_to_loop
from tests.support.server.apiserver import running

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
NAMESPACES = "/api/v1/namespaces"
WITHOUT_LEASE = LeaderElection(leader_elect=False)


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def server(clock):
    async with running(clock=clock) as server:
        assert (await server.post(NAMESPACES, {"metadata": {"name": "kube-system"}})).status == 201
        yield server


def manager_of(server, clock, *, leading=WITHOUT_LEASE, follows=None, **settings):
    config = Config(controllers=Controllers(controllers=("serviceaccount",)), leading=leading, **settings)
    access = Access(server=server.url, token="admin")
    return Manager(config, clock=clock, random=SeededRandom(), follows=follows, access=access)


@contextlib.asynccontextmanager
async def running_manager(manager):
    task = asyncio.create_task(manager.run())
    try:
        yield task
    finally:
        await kill(task)


async def has_account(server, namespace):
    return (await server.get(f"{NAMESPACES}/{namespace}/serviceaccounts/default")).status == 200


async def until_account(server, namespace="kube-system"):
    while not await has_account(server, namespace):
        await yield_to_loop()


async def test_manager_without_election_works_and_reports_its_controllers(server, clock):
    manager = manager_of(server, clock)
    checks = manager.status_sources.checks
    async with running_manager(manager):
        await until_account(server)
        assert checks["serviceaccount-controller"]() == ""
        assert "leaderElection" not in checks
    assert [*checks] == ["ping"]
    assert (await server.get(LEASE)).status == 404


async def test_leader_works_with_a_lease_and_records_an_event(server, clock):
    manager = manager_of(server, clock, leading=LeaderElection())
    async with running_manager(manager):
        await until_account(server)
        lease = (await server.get(LEASE)).body
        events = []
        while not events:
            events = (await server.get(f"{NAMESPACES}/kube-system/events")).body["items"]
        holder = lease["spec"]["holderIdentity"]
        assert [(event["reason"], event["message"]) for event in events] == [
            ("LeaderElection", f"{holder} became leader")
        ]
        assert manager.status_sources.checks["leaderElection"]() == ""


async def test_manager_in_the_time_of_the_server_works(server):
    clock = ClusterClock()
    async with running_manager(manager_of(server, clock, follows=clock)):
        await until_account(server)


async def test_flags_that_do_not_fit_the_server_end_the_manager(server, clock):
    features = Features(feature_gates={"NoSuchGate": True})
    with pytest.raises(UnusableFlags, match="unrecognized feature gate: NoSuchGate"):
        await manager_of(server, clock, features=features).run()


def test_access_is_that_of_the_flags_by_default(clock):
    config = Config(server=ClientConnectionOptions(master="http://127.0.0.1:1"))
    manager = Manager(config, clock=clock, random=SeededRandom())
    assert manager._client_options().access.server == "http://127.0.0.1:1"
    access = Access(server="http://127.0.0.1:2")
    manager = Manager(config, clock=clock, random=SeededRandom(), access=access)
    assert manager._client_options().access == access
