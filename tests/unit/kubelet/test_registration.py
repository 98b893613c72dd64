"""How often simulated nodes renew their Leases."""

import asyncio
from datetime import timedelta

import orjson
import pytest

from mockube.apimachinery import status
from mockube.client.wire import NoResponse
from mockube.kubelet.lease_renewals import MIN_NODES
from mockube.kubelet.registration import NodeRegistration, renew_interval
from tests.support.event_loop import yield_to_loop


@pytest.mark.parametrize(
    ("nodes", "grace_period", "seconds"),
    [
        pytest.param(1, 50, 10, id="as a kubelet"),
        pytest.param(1_000, 50, 10, id="100 renewals a second"),
        pytest.param(2_000, 50, 20, id="less often, so that there are no more"),
        pytest.param(15_000, 50, 25, id="twice within the grace period"),
        pytest.param(15_000, 12, 10, id="never more often than a kubelet"),
    ],
)
def test_many_nodes_renew_less_often(nodes, grace_period, seconds):
    assert renew_interval(nodes, grace_period) == timedelta(seconds=seconds)


class ActiveNodes:
    """A registry in which every kubelet is active, apart from some."""

    def __init__(self):
        self.inactive = set()

    def node_with_kubelet(self, name):
        return None if name in self.inactive else {"metadata": {"name": name}}


class Server:
    """A client of a server that may serve renewals of many Leases; it counts requests."""

    def __init__(self, *, code=200):
        self.patched, self.renewed, self.not_renewed, self.code = [], [], [], code

    async def patch(self, _, key, __):
        self.patched.append(key.name)

    async def raw(self, method, path, *, body):
        assert (method, path) == ("POST", "/mockube/lease-renewals")
        if self.code == 0:
            raise NoResponse("the connection was closed")
        if self.code != 200:
            raise status.generic(self.code)
        self.renewed.append(orjson.loads(body)["names"])
        return {"notRenewed": [name for name in self.renewed[-1] if name in self.not_renewed]}


class Run:
    """Nodes whose kubelets renew their Leases until the end of a test. Each has renewed its Lease once."""

    def __init__(self, server, clock):
        self.server, self.clock, self.nodes, self.queued = server, clock, ActiveNodes(), []
        self.registration = NodeRegistration(
            server, self.nodes, clock=clock, grace_period=50, requeue=self.queued.append
        )

    async def add(self, count):
        for number in range(count):
            await self.registration.heartbeat(f"node-{number}")
        self.server.patched.clear()

    async def advance(self, seconds):
        """Advance the clock, second by second, and process what is queued."""
        for _ in range(seconds):
            self.clock.advance(1)
            await yield_to_loop(5)
            while self.queued:
                await self.registration.heartbeat(self.queued.pop())


@pytest.fixture
async def started(clock):
    async with asyncio.TaskGroup() as group:
        tasks = []

        async def start(nodes, **options):
            run = Run(Server(**options), clock)
            tasks.append(group.create_task(run.registration.renewals.run()))
            await run.add(nodes)
            await yield_to_loop()
            return run

        yield start
        for task in tasks:
            task.cancel()


async def test_few_nodes_renew_by_requests_of_their_own(started):
    run = await started(MIN_NODES)
    await run.advance(9)
    assert await run.registration.heartbeat("node-0") == timedelta(seconds=1)
    await run.advance(1)
    assert await run.registration.heartbeat("node-0") == timedelta(seconds=10)
    assert (run.server.patched, run.server.renewed) == (["node-0"], [])


async def test_many_nodes_are_renewed_together_and_evenly(started):
    run = await started(2_000)
    assert await run.registration.heartbeat("node-0") is None
    await run.advance(20)
    assert [len(names) for names in run.server.renewed] == [100] * 20
    assert len({name for names in run.server.renewed for name in names}) == 2_000
    await run.advance(1)
    assert run.server.renewed[-1] == run.server.renewed[0]
    assert run.server.patched == []


async def test_renewals_that_a_stalled_loop_missed_are_made_up(started):
    run = await started(2_000)
    run.clock.advance(15)
    await run.advance(1)
    assert sum(map(len, run.server.renewed)) == 1_600
    assert max(map(len, run.server.renewed)) == 500


async def test_renewals_without_response_are_repeated(started, caplog):
    run = await started(2_000)
    run.server.code = 0
    await run.advance(4)
    run.server.code = 200
    await run.advance(1)
    assert run.server.renewed[0][0] == "node-0"
    assert sum(map(len, run.server.renewed)) == 500
    assert {record.message for record in caplog.records} == {
        "Leases of nodes were not renewed: the connection was closed"
    }


async def test_lease_that_was_not_renewed_is_patched(started):
    run = await started(200)
    run.server.not_renewed = ["node-3"]
    await run.advance(1)
    assert run.server.patched == ["node-3"]


async def test_inactive_node_is_not_renewed(started):
    run = await started(200)
    run.nodes.inactive.add("node-3")
    await run.advance(20)
    renewed = {name for names in run.server.renewed for name in names}
    assert renewed == {f"node-{number}" for number in range(200)} - {"node-3"}
    run.nodes.inactive.clear()
    assert await run.registration.heartbeat("node-3") is None
    assert run.server.patched == ["node-3"]


@pytest.mark.parametrize("code", [403, 404, 405])
async def test_many_nodes_of_another_server_renew_by_requests_of_their_own(started, code):
    run = await started(2_000, code=code)
    await run.advance(1)
    assert await run.registration.heartbeat("node-0") == timedelta(seconds=19)
    await run.advance(19)
    assert await run.registration.heartbeat("node-0") == timedelta(seconds=20)
    assert run.server.patched == ["node-0"]


async def test_server_that_serves_renewals_again_gets_them_after_some_minutes(started):
    run = await started(2_000, code=404)
    await run.advance(1)
    run.server.patched.clear()
    await run.advance(299)
    run.server.code = 200
    await run.advance(301)
    assert run.server.renewed[0] == []
    assert await run.registration.heartbeat("node-0") is None
    await run.advance(20)
    assert [len(names) for names in run.server.renewed[1:]] == [100] * 19


async def test_server_that_still_refuses_renewals_costs_no_renewals(started):
    run = await started(2_000, code=404)
    await run.advance(1)
    run.server.patched.clear()
    await run.advance(900)
    assert (run.server.patched, run.registration.renewals.is_on) == ([], False)


class Objects:
    """A server that has some objects already."""

    def __init__(self, *present):
        self.present, self.created = present, []

    async def create(self, resource, body):
        if resource.plural in self.present:
            raise status.AlreadyExists("there")
        self.created.append((resource.plural, body["metadata"]["name"]))
        return {**body, "metadata": {**body["metadata"], "uid": "new"}}

    async def get(self, _resource, key):
        return {"metadata": {"name": key.name, "uid": "old"}}


@pytest.mark.parametrize(
    ("present", "created"),
    [
        ([], [("nodes", "n"), ("csinodes", "n")]),
        (["nodes"], [("csinodes", "n")]),
        (["nodes", "csinodes"], []),
    ],
)
async def test_node_is_registered_with_its_drivers(clock, present, created):
    server = Objects(*present)
    registration = NodeRegistration(server, ActiveNodes(), clock=clock, grace_period=50)
    await registration.register({"metadata": {"name": "n"}})
    assert server.created == created
