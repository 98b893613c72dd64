"""PodDisruptionBudgets by the manager with a real server, and the evictions that they allow."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.disruption.controller import DISRUPTION
from mockube.controller_manager.controllers.disruption.stale import STALE_POD_DISRUPTION
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from tests.support.controllers.running_manager import running_cluster

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture
async def scenario():
    clock = SteppedClock()
    controllers = [SERVICE_ACCOUNT, DISRUPTION, STALE_POD_DISRUPTION]
    async with running_cluster(clock=clock, controllers=controllers) as (server, manager):
        yield Scenario(server, manager)


class Scenario:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager

    async def pods(self, *names):
        for name in names:
            spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "node-1"}
            pod = {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}
            answer = await self.server.post(PODS, pod)
            assert answer.status == 201, answer.body
            await self.server.patch(f"{PODS}/{name}/status", {"status": READY})
        await self.manager.settle()

    async def budget(self, **spec):
        selector = {"matchLabels": {"app": "web"}}
        body = {"metadata": {"name": "guard"}, "spec": {"selector": selector, **spec}}
        answer = await self.server.post(BUDGETS, body)
        assert answer.status == 201, answer.body
        await self.manager.settle()

    async def evict(self, name):
        answer = await self.server.post(f"{PODS}/{name}/eviction", {"metadata": {"name": name}})
        await self.manager.settle()
        return answer.status

    async def status(self):
        return (await self.server.get(f"{BUDGETS}/guard")).body["status"]


async def test_evictions_respect_budget(scenario):
    await scenario.pods("a", "b", "c")
    await scenario.budget(minAvailable=2)
    assert (await scenario.status())["disruptionsAllowed"] == 1
    assert await scenario.evict("a") == 201
    status = await scenario.status()
    assert (status["disruptionsAllowed"], status["currentHealthy"]) == (0, 2)
    assert "disruptedPods" not in status  # the pod is seen deleting
    assert await scenario.evict("b") == 429


async def test_budget_status_follows_pods(scenario):
    await scenario.budget(minAvailable=1)
    await scenario.pods("a", "b")
    status = await scenario.status()
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (2, 2, 1)
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [("DisruptionAllowed", "True")]
    await scenario.server.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    await scenario.manager.settle()
    assert (await scenario.status())["disruptionsAllowed"] == 0


async def test_stale_disruption_condition_is_cleared(scenario):
    await scenario.pods("a")
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "Test", "message": "m"}
    since = {"lastTransitionTime": "2030-01-01T00:00:00Z"}
    await scenario.server.patch(f"{PODS}/a/status", {"status": {"conditions": [{**condition, **since}]}})
    await scenario.manager.step(121)
    pod = (await scenario.server.get(f"{PODS}/a")).body
    (found,) = [one for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    assert found["status"] == "False"
