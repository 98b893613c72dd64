"""HorizontalPodAutoscaler scenarios, compared with the status and events of kube-controller-manager 1.37.2 and 1.36.3.

It looked at autoscalers every 4 s, and the answers are from 17 s after the last was made. Ambiguous selectors are not among
them, because their messages are in no order.
"""

from pathlib import Path

import orjson
import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.config.features import Features
from mockube.controller_manager.config.settings import Config, Controllers
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.horizontalpodautoscaler.controller import (
    HORIZONTAL_POD_AUTOSCALER,
)
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from tests.support.controllers.autoscaling_scenarios import (
    autoscaler_report,
    definitions,
    first_requests,
    last_requests,
    statuses,
)
from tests.support.controllers.running_manager import running_manager
from tests.support.server.apiserver import running
from tests.support.server.definitions import define

FILES = {"1.37": "autoscaling_answers.jsonl", "1.36": "older_autoscaling_answers.jsonl"}
SCENARIOS = [
    pytest.param(minor, orjson.loads(line), id=f"{minor}-{orjson.loads(line)['id']}")
    for minor, name in FILES.items()
    for line in Path(__file__).with_name(name).read_bytes().splitlines()
]


@pytest.mark.parametrize(("minor", "scenario"), SCENARIOS)
async def test_autoscaler_decisions_match_recording(minor, scenario):
    clock = SteppedClock()
    config = Config(
        controllers=Controllers(horizontal_pod_autoscaler_sync_period=4.0),
        features=Features(kubernetes_version=minor),
    )
    controllers, runnables = [SERVICE_ACCOUNT, DEPLOYMENT, REPLICA_SET], [HORIZONTAL_POD_AUTOSCALER]
    async with (
        running(f"--kubernetes-version={minor}", clock=clock) as server,
        running_manager(
            server, clock, controllers=controllers, runnables=runnables, config=config
        ) as manager,
    ):
        for definition in definitions():
            await define(server, definition)
        await server.post("/api/v1/namespaces", {"metadata": {"name": scenario["id"]}})
        await manager.settle()
        await run_scenario(scenario, server, manager)
        assert await answer(scenario, server) == {"status": scenario["status"], "events": scenario["events"]}


async def run_scenario(scenario, server, manager):
    await post_all(server, first_requests(scenario))
    await manager.step(3)
    pods = await pod_names(scenario, server)
    for path, body in statuses(scenario, pods):
        patched = await server.patch(path, body)
        assert patched.status == 200, patched.body
    await post_all(server, last_requests(scenario, pods))
    await manager.step(17)


async def post_all(server, requests):
    for path, body in requests:
        created = await server.post(path, body)
        assert created.status == 201, created.body


async def pod_names(scenario, server):
    items = (await server.get(f"/api/v1/namespaces/{scenario['id']}/pods")).body["items"]
    return sorted(pod["metadata"]["name"] for pod in items)


async def answer(scenario, server):
    namespace = scenario["id"]
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/h"
    autoscaler = (await server.get(path)).body
    events = (await server.get(f"/api/v1/namespaces/{namespace}/events")).body["items"]
    return autoscaler_report(autoscaler, events, await pod_names(scenario, server))
