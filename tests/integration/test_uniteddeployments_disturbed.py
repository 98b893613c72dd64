"""A UnitedDeployment whose manager loses answers and watches, meets others' writes, or is killed: no workload is made twice."""

import contextlib
from functools import partial
from types import SimpleNamespace

import pytest

from apimachinery.clock import SteppedClock
from controller_manager.controllers.deployment.controller import DEPLOYMENT
from controller_manager.controllers.replicaset.controller import REPLICA_SET
from controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from controller_manager.controllers.statefulset.controller import STATEFUL_SET
from controller_manager.controllers.uniteddeployment.controller import UNITED_DEPLOYMENT
from tests.support.apiserver import running
from tests.support.disturbed import Killed, Lost, play
from tests.support.running_manager import running_manager
from tests.support.united_stories import KRUISE, UNITED
from tests.support.uniteddeployments import ADAPTER, subset, template_of, united

PODS = "/api/v1/namespaces/default/pods"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
CONTROLLERS = [SERVICE_ACCOUNT, UNITED_DEPLOYMENT, DEPLOYMENT, REPLICA_SET, STATEFUL_SET]
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
LONGEST_WATCH = 700
"""Seconds after which every watch has been begun anew."""
WRITES = 60
"""More than the story has."""
of_two_kinds = pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])


class Story:
    """Two subsets are made and rolled to another version, then one makes room for a third; the machine is the test's."""

    def __init__(self, server, kind):
        self.server = server
        self.kind = kind
        self.workloads = ADAPTER[kind].resource.path("default")
        self.made = {}
        """The uids of all workloads that there ever were, by subset."""
        self.pods = set()
        self.steps = iter((self._create, self._release, self._move))

    async def go_on(self):
        await self._look_at_workloads()
        if await self._collect_garbage() or await self._run_pods() or not await self._is_rolled_out():
            return True
        step = next(self.steps, None)
        if step is not None:
            await step()
        return step is not None

    async def _create(self):
        assert (await self.server.post(UNITED, united(self.kind, "ab", replicas=2))).status == 201

    async def _release(self):
        await self._patch(template=template_of(self.kind, "a:2"))

    async def _move(self):
        await self._patch(topology={"subsets": [subset("a"), subset("c")]})

    async def _patch(self, **spec):
        answer = await self.server.patch(f"{UNITED}/foo", {"spec": spec})
        assert answer.status == 200, answer.body

    async def _look_at_workloads(self):
        for it in await self._items(self.workloads):
            name = it["metadata"]["labels"]["apps.kruise.io/subset-name"]
            self.made.setdefault(name, set()).add(it["metadata"]["uid"])

    async def _collect_garbage(self):
        """What had an owner that is gone goes too."""
        owned = [(path, it) for path in (REPLICA_SETS, PODS) for it in await self._items(path)]
        there = {
            it["metadata"]["uid"] for it in (*await self._items(self.workloads), *(it for _, it in owned))
        }
        acted = False
        for path, it in owned:
            metadata = it["metadata"]
            if metadata["ownerReferences"][0]["uid"] not in there:
                await self.server.delete(f"{path}/{metadata['name']}", {"gracePeriodSeconds": 0})
                acted = True
        return acted

    async def _items(self, path):
        return (await self.server.get(path)).body["items"]

    async def _run_pods(self):
        acted = False
        for pod in await self._items(PODS):
            self.pods.add(pod["metadata"]["uid"])
            path = f"{PODS}/{pod['metadata']['name']}"
            if "deletionTimestamp" in pod["metadata"]:
                await self.server.delete(path, {"gracePeriodSeconds": 0})
            elif pod["status"]["phase"] == "Pending":
                await self.server.patch(f"{path}/status", {"status": READY})
            else:
                continue
            acted = True
        return acted

    async def _is_rolled_out(self):
        answer = await self.server.get(f"{UNITED}/foo")
        if answer.status == 404:
            return True
        found = answer.body
        status = found.get("status") or {}
        counts = {status.get(field) for field in ("replicas", "updatedReplicas", "updatedReadyReplicas")}
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return seen and counts == {2} and len(await self._items(PODS)) == 2

    async def check_end(self):
        assert {name: len(uids) for name, uids in self.made.items()} == {"a": 1, "b": 1, "c": 1}
        assert len(self.pods) == 5, "two of each version, and one that moved"
        found = await self._items(self.workloads)
        assert {it["metadata"]["labels"]["apps.kruise.io/subset-name"] for it in found} == {"a", "c"}
        status = (await self.server.get(f"{UNITED}/foo")).body["status"]
        assert status["currentRevision"] == status["updateStatus"]["updatedRevision"]
        assert status["subsetReplicas"] == {"a": 1, "c": 1}


class Overtaken:
    """Before every so-manyth replacement of an object somebody else has changed it, until they are tired of it."""

    def __init__(self, server, every, times=15):
        self._server = server
        self._every = every
        self._last = every * times
        self._count = 0

    async def __call__(self, request):
        if request.method != "PUT" or self._count >= self._last:
            return
        self._count += 1
        if self._count % self._every == 0:
            note = {"metadata": {"annotations": {"note": str(self._count)}}}
            await self._server.patch(request.target.removesuffix("/status"), note)


class CutShort:
    """A transport that is another, but whose watches end after so many pieces, in the middle of a line or not."""

    def __init__(self, transport, after):
        self.transport = transport
        self.host = transport.host
        self.send = transport.send
        self.close = transport.close
        self.cuts = 0
        self._after = after

    @contextlib.asynccontextmanager
    async def stream(self, request, headers):
        async with self.transport.stream(request, headers) as stream:
            yield SimpleNamespace(
                status=stream.status, read=stream.read, chunks=partial(self._chunks, stream)
            )

    async def _chunks(self, stream):
        seen = 0
        async for chunk in stream.chunks():
            seen += 1
            if seen > self._after:
                self.cuts += 1
                yield chunk[: len(chunk) // 2]
                return
            yield chunk


@of_two_kinds
@pytest.mark.parametrize("after", [2, 5])
async def test_watches_that_are_cut_change_nothing(after, kind):
    clock = SteppedClock()
    async with (
        running(clock=clock, settings=KRUISE) as server,
        running_manager(server, clock, controllers=CONTROLLERS) as manager,
    ):
        manager.transport.transport = cutting = CutShort(manager.transport.transport, after)
        await manager.step(LONGEST_WATCH)
        story = Story(server, kind)
        await play(story, manager, clock)
        await story.check_end()
        assert cutting.cuts > 0


@of_two_kinds
@pytest.mark.parametrize("way", ["on_way_there", "on_way_back"])
@pytest.mark.parametrize("every", [2, 3, 7])
async def test_what_is_lost_changes_nothing(way, every, kind):
    await disturbed(kind, lambda _: {way: Lost(every)})


@of_two_kinds
@pytest.mark.parametrize("every", [2, 3])
async def test_others_that_are_faster_change_nothing(every, kind):
    await disturbed(kind, lambda server: {"on_way_there": Overtaken(server, every)})


async def disturbed(kind, disturbances):
    clock = SteppedClock()
    async with (
        running(clock=clock, settings=KRUISE) as server,
        running_manager(server, clock, controllers=CONTROLLERS) as manager,
    ):
        for way, disturbance in disturbances(server).items():
            setattr(manager.transport, way, disturbance)
        story = Story(server, kind)
        await play(story, manager, clock)
        await story.check_end()


@of_two_kinds
@pytest.mark.parametrize("after", range(1, WRITES, 6))
async def test_a_manager_that_is_killed_is_followed_by_one_that_goes_on(after, kind):
    clock = SteppedClock()
    async with running(clock=clock, settings=KRUISE) as server:
        story = Story(server, kind)
        async with running_manager(server, clock, controllers=CONTROLLERS) as first:
            first.transport.on_way_back = death = Killed(after)
            await play(story, first, clock, until=death.killed.is_set)
        async with running_manager(server, clock, controllers=CONTROLLERS) as second:
            await play(story, second, clock)
            await story.check_end()
