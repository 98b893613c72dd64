"""A StatefulSet whose manager loses answers, or is killed: what comes of it is the same, and nothing is made twice."""

import pytest

from apimachinery.clock import SteppedClock
from controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.apiserver import running
from tests.support.disturbed import Killed, Lost, play
from tests.support.running_manager import running_manager
from tests.support.statefulsets import claim_template, statefulset

NAMESPACE = "/api/v1/namespaces/default"
SETS = "/apis/apps/v1/namespaces/default/statefulsets"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
CONTROLLERS = [SERVICE_ACCOUNT, STATEFUL_SET]
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
WRITES = 30
"""More than the story has."""


class Story:
    """Two pods with storage are made, rolled, and one of them is taken away; the machine is the test's."""

    def __init__(self, server):
        self.server = server
        self.pods = set()
        """The uids of all pods that there ever were."""
        self.steps = iter((self._create, self._roll, self._shrink))

    async def go_on(self):
        """What a machine does, or the next step once all is as it should be; False at the end."""
        if await self._run_pods() or not await self._is_rolled_out():
            return True
        step = next(self.steps, None)
        if step is not None:
            await step()
        return step is not None

    async def _create(self):
        body = statefulset(replicas=2, volumeClaimTemplates=[claim_template()])
        assert (await self.server.post(SETS, body)).status == 201

    async def _roll(self):
        await self._patch({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}})

    async def _shrink(self):
        await self._patch({"replicas": 1})

    async def _patch(self, spec):
        assert (await self.server.patch(f"{SETS}/web", {"spec": spec})).status == 200

    async def _run_pods(self):
        acted = False
        for pod in (await self.server.get(f"{NAMESPACE}/pods")).body["items"]:
            self.pods.add(pod["metadata"]["uid"])
            path = f"{NAMESPACE}/pods/{pod['metadata']['name']}"
            if "deletionTimestamp" in pod["metadata"]:
                await self.server.delete(path, {"gracePeriodSeconds": 0})
            elif pod["status"]["phase"] == "Pending":
                await self.server.patch(f"{path}/status", {"status": READY})
            else:
                continue
            acted = True
        return acted

    async def _is_rolled_out(self):
        answer = await self.server.get(f"{SETS}/web")
        if answer.status == 404:
            return True
        status = answer.body.get("status") or {}
        counts = {status.get(field) for field in ("replicas", "readyReplicas", "updatedReplicas")}
        seen = status.get("observedGeneration") == answer.body["metadata"]["generation"]
        return seen and counts == {answer.body["spec"]["replicas"]}

    async def check_end(self):
        for path, expected in (("pods", 1), ("persistentvolumeclaims", 2)):
            assert len((await self.server.get(f"{NAMESPACE}/{path}")).body["items"]) == expected
        assert len((await self.server.get(REVISIONS)).body["items"]) == 2
        assert len(self.pods) == 4, "two pods were made, and made again"


@pytest.mark.parametrize("way", ["on_way_there", "on_way_back"])
@pytest.mark.parametrize("every", [2, 3, 7])
async def test_what_is_lost_changes_nothing(way, every):
    clock = SteppedClock()
    async with (
        running(clock=clock) as server,
        running_manager(server, clock, controllers=CONTROLLERS) as manager,
    ):
        setattr(manager.transport, way, Lost(every))
        story = Story(server)
        await play(story, manager, clock)
        await story.check_end()


@pytest.mark.parametrize("after", range(1, WRITES, 2))
async def test_a_manager_that_is_killed_is_followed_by_one_that_goes_on(after):
    clock = SteppedClock()
    async with running(clock=clock) as server:
        story = Story(server)
        async with running_manager(server, clock, controllers=CONTROLLERS) as first:
            first.transport.on_way_back = death = Killed(after)
            await play(story, first, clock, until=death.killed.is_set)
        async with running_manager(server, clock, controllers=CONTROLLERS) as second:
            await play(story, second, clock)
            await story.check_end()
