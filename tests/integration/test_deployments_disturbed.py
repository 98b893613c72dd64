"""A Deployment whose manager loses answers, or is killed: what comes of it is the same, and nothing is made twice."""

import pytest

from apimachinery.clock import SteppedClock
from controller_manager.controllers.deployment.controller import DEPLOYMENT
from controller_manager.controllers.replicaset.controller import REPLICA_SET
from controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from tests.support.apiserver import running
from tests.support.deployments import RECREATE, deployment, image_of, rolling, template
from tests.support.disturbed import Killed, Lost, play
from tests.support.running_manager import running_manager

PODS = "/api/v1/namespaces/default/pods"
APPS = "/apis/apps/v1/namespaces/default"
CONTROLLERS = [SERVICE_ACCOUNT, DEPLOYMENT, REPLICA_SET]
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
WRITES = 50
"""More than the story has."""


class Story:
    """Two pods are made, rolled to another version and back, and one of them is taken away; the machine is the test's."""

    def __init__(self, server, strategy):
        self.server = server
        self.strategy = strategy
        self.pods = set()
        """The uids of all pods that there ever were."""
        self.most = 0
        self.steps = iter(
            (self._create, self._patch({"template": template("a:2")}), self._patch({"template": template()}))
        )

    async def go_on(self):
        """What a machine does, or the next step once all is as it should be; False at the end."""
        if await self._run_pods() or not await self._is_rolled_out():
            return True
        step = next(self.steps, None)
        if step is not None:
            await step()
        return step is not None

    async def _create(self):
        body = deployment(replicas=2, strategy=self.strategy)
        assert (await self.server.post(f"{APPS}/deployments", body)).status == 201

    def _patch(self, spec):
        async def patch():
            assert (await self.server.patch(f"{APPS}/deployments/web", {"spec": spec})).status == 200

        return patch

    async def _run_pods(self):
        acted = False
        found = (await self.server.get(PODS)).body["items"]
        self.most = max(self.most, sum("deletionTimestamp" not in pod["metadata"] for pod in found))
        for pod in found:
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
        answer = await self.server.get(f"{APPS}/deployments/web")
        if answer.status == 404:
            return True
        status = answer.body.get("status") or {}
        counts = {status.get(field) for field in ("replicas", "availableReplicas", "updatedReplicas")}
        seen = status.get("observedGeneration") == answer.body["metadata"]["generation"]
        return seen and counts == {2} and status["terminatingReplicas"] == 0

    async def check_end(self):
        sets = (await self.server.get(f"{APPS}/replicasets")).body["items"]
        assert {image_of(it["spec"]["template"]): it["spec"]["replicas"] for it in sets} == {
            "a:1": 2,
            "a:2": 0,
        }
        assert len(self.pods) == 6, "two pods of each version, and two more of the first"
        assert self.most <= 3


@pytest.mark.parametrize("way", ["on_way_there", "on_way_back"])
@pytest.mark.parametrize("every", [2, 3, 7])
async def test_what_is_lost_changes_nothing(way, every):
    clock = SteppedClock()
    async with (
        running(clock=clock) as server,
        running_manager(server, clock, controllers=CONTROLLERS) as manager,
    ):
        setattr(manager.transport, way, Lost(every))
        story = Story(server, rolling(1, 0))
        await play(story, manager, clock)
        await story.check_end()


@pytest.mark.parametrize("strategy", [rolling(1, 0), RECREATE], ids=lambda it: it["type"])
@pytest.mark.parametrize("after", range(1, WRITES, 5))
async def test_a_manager_that_is_killed_is_followed_by_one_that_goes_on(after, strategy):
    clock = SteppedClock()
    async with running(clock=clock) as server:
        story = Story(server, strategy)
        async with running_manager(server, clock, controllers=CONTROLLERS) as first:
            first.transport.on_way_back = death = Killed(after)
            await play(story, first, clock, until=death.killed.is_set)
        async with running_manager(server, clock, controllers=CONTROLLERS) as second:
            await play(story, second, clock)
            await story.check_end()
