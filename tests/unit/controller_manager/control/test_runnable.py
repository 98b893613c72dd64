"""A runnable with required resources starts when the server serves all of them, and then stops polling."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import NotFound, ServiceUnavailable
from mockube.client.resources import row
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.control.runnable import REFRESH_SECONDS, WaitForKinds
from tests.support.event_loop import yield_to_loop

NEEDS = (
    row("example.com/v1alpha1", "shops", "Shop"),
    row("example.com/v1alpha1", "websites", "Website"),
    row("example.com/v1beta1", "statefulsets", "StatefulSet"),
)
ALPHA, BETA = "/apis/example.com/v1alpha1", "/apis/example.com/v1beta1"


class Server:
    """A fake server that returns the resources of each path, or raises the error stored for it."""

    def __init__(self):
        self.has = {}
        self.asked = []

    async def raw(self, method, path):
        self.asked.append((method, path))
        found = self.has.get(path, NotFound("no such group"))
        if isinstance(found, Exception):
            raise found
        return {"resources": [{"name": plural} for plural in found]}


class Scenario:
    def __init__(self):
        self.server = Server()
        self.clock = SteppedClock()
        self.builds = 0
        self.runs = 0
        context = SimpleNamespace(client=self.server, clock=self.clock)
        self.waiting = WaitForKinds(NEEDS, self.build, context)

    def build(self):
        self.builds += 1
        return self

    async def run(self):
        self.runs += 1
        await asyncio.Event().wait()

    async def pass_(self, seconds=0.0):
        self.clock.advance(seconds)
        for _ in range(5):
            await yield_to_loop()


@pytest.fixture
async def scenario():
    scenario = Scenario()
    task = asyncio.create_task(scenario.waiting.run())
    await scenario.pass_()
    yield scenario
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_runnable_is_not_built_while_kinds_are_missing(scenario):
    await scenario.pass_(REFRESH_SECONDS)
    assert scenario.builds == 0
    assert scenario.server.asked == [("GET", ALPHA), ("GET", BETA)] * 2


@pytest.mark.parametrize(
    "has",
    [
        pytest.param({ALPHA: ["shops", "websites"]}, id="a version is missing"),
        pytest.param({ALPHA: ["shops"], BETA: ["statefulsets"]}, id="a resource is missing"),
        pytest.param(
            {ALPHA: ["shops"], BETA: ["statefulsets", "websites"]},
            id="resource in another version only",
        ),
        pytest.param({ALPHA: ServiceUnavailable("not now")}, id="discovery fails"),
    ],
)
async def test_runnable_needs_all_kinds(scenario, has):
    scenario.server.has = has
    await scenario.pass_(REFRESH_SECONDS)
    assert scenario.builds == 0


async def test_runnable_starts_when_all_kinds_are_served(scenario):
    scenario.server.has = {ALPHA: ["shops", "websites", "others"], BETA: ["statefulsets"]}
    await scenario.pass_(REFRESH_SECONDS - 1)
    assert scenario.builds == 0
    await scenario.pass_(1)
    assert (scenario.builds, scenario.runs) == (1, 1)
    asked = len(scenario.server.asked)
    await scenario.pass_(REFRESH_SECONDS)
    assert len(scenario.server.asked) == asked
