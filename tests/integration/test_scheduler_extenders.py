"""Extenders of the scheduler: what real kube-schedulers did with them, recorded by judges/differential/scheduling_extenders.py."""

import asyncio
import threading
from pathlib import Path

import orjson
import pytest

from mockube.client import kinds
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import KUBE_SCHEDULER
from mockube.controller_manager.config.settings import Config, Controllers
from tests.support.controllers import extender_scenarios as scenarios
from tests.support.controllers.running_manager import running_manager
from tests.support.controllers.scheduler_profiles import tree_of
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop
from tests.support.server.apiserver import running

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
WITHOUT_DEFAULTS = (
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority,DefaultTolerationSeconds"
)
RECORDED = {
    row["scenario"]: row
    for row in map(
        orjson.loads, Path(__file__).with_name("recorded_extenders_1_37.jsonl").read_bytes().splitlines()
    )
}


def test_every_scenario_is_recorded():
    assert [*RECORDED] == [*scenarios.SCENARIOS]


@pytest.mark.parametrize("name", RECORDED)
async def test_extender_has_the_effect_that_it_has_on_a_real_scheduler(name, tmp_path):
    scenario, real = scenarios.SCENARIOS[name], RECORDED[name]
    async with running(WITHOUT_DEFAULTS, clock=SteppedClock()) as server:
        with scenarios.ExtenderServer(scenario["answers"], server.url) as extender:
            cluster = Cluster(server, extender)
            await cluster.create(scenario)
            async with running_scheduler(server, extender.configuration(scenario), tmp_path) as manager:
                pods = [await cluster.schedule(manager, one, pod) for one, pod in scenario["pods"].items()]
            requests = scenarios.normalized(extender.requests, extender.uids)
    assert pods == real["pods"]
    assert requests == real["requests"]


def running_scheduler(server, extenders, folder):
    file = folder / "scheduler.yaml"
    file.write_bytes(orjson.dumps({**tree_of([{}]), "extenders": extenders}))
    config = Config(controllers=Controllers(scheduler_config=file))
    return running_manager(server, SteppedClock(), runnables=[KUBE_SCHEDULER], config=config)


class Cluster:
    """The objects of a scenario."""

    def __init__(self, server, extender):
        self.server = server
        self.extender = extender

    async def create(self, scenario):
        for name, cpus in scenario["nodes"].items():
            body, allocatable = scenarios.node_of(name, cpus)
            await self.server.post(NODES, body)
            status = {"status": {"capacity": allocatable, "allocatable": allocatable}}
            await self.server.patch(f"{NODES}/{name}/status", status)
        for name, (node, cpus) in scenario["running"].items():
            await self._create_pod(name, scenarios.pod_of(name, cpus, node=node))

    async def _create_pod(self, name, body):
        created = await self.server.post(PODS, body)
        assert created.status == 201, created.data
        self.extender.uids[name] = created.body["metadata"]["uid"]

    async def schedule(self, manager, name, pod):
        """Create a pod, and return what becomes of it."""
        await self._create_pod(name, scenarios.pod_of(name, **pod))
        outcome = event = None
        async with asyncio.timeout(WAIT_TIMEOUT):
            while outcome is None or event is None:
                await yield_to_loop()
                outcome = scenarios.outcome_of((await self.server.get(f"{PODS}/{name}")).body)
                event = await self._event(name)
        await self.server.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        await manager.settle()
        return {
            key: scenarios.without_ports_and_uids(text, self.extender.url, self.extender.uids)
            for key, text in {"pod": name, **outcome, "event": event}.items()
        }

    async def _event(self, name):
        for event in (await self.server.get(EVENTS)).body["items"]:
            if event["regarding"]["name"] == name and event["reason"] in ("Scheduled", "FailedScheduling"):
                return f"{event['reason']}: {event['note']}"
        return None


class SlowExtender(scenarios.ExtenderServer):
    """It answers when it is released."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.released = threading.Event()

    def answer(self, path, body):
        self.released.wait()
        return super().answer(path, body)


async def test_pod_that_is_deleted_while_an_extender_is_asked_takes_no_room(tmp_path):
    """It preempts no pod, and is nominated for no node."""
    filters = {"filterVerb": "filter", "nodeCacheCapable": True}
    accept = scenarios.accept(failed={"b": "too hot"})
    scenario = scenarios.scenario(filters, nodes=scenarios.TWO, running={"low": ("a", 3)}, filter=accept)
    async with running(WITHOUT_DEFAULTS, clock=SteppedClock()) as server:
        with SlowExtender(scenario["answers"], server.url) as extender:
            cluster = Cluster(server, extender)
            await cluster.create(scenario)
            async with running_scheduler(server, extender.configuration(scenario), tmp_path) as manager:
                await server.post(PODS, scenarios.pod_of("high", 4, priority=10))
                await until(lambda: extender.requests)
                await server.delete(f"{PODS}/high", {"gracePeriodSeconds": 0})
                known = manager.work.informers.of(kinds.PODS).lister
                await until(lambda: known.get("default", "high") is None)
                extender.released.set()
                await manager.settle()
                assert (await server.delete(f"{PODS}/low", {"gracePeriodSeconds": 0})).status == 200
                scenario["answers"]["filter"] = scenarios.accept("a")
                outcome = await cluster.schedule(manager, "late", {"cpu": 4})
    assert outcome["node"] == "a"


async def until(condition):
    async with asyncio.timeout(WAIT_TIMEOUT):
        while not condition():
            await yield_to_loop()
