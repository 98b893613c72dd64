"""What a run of the controllers leaves in memory when it ends."""

import asyncio
import gc
import weakref

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.kubeconfig import Access
from mockube.client.leaderelection.elector import LeaseLost
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager import app
from mockube.controller_manager.config.settings import Config
from tests.support.event_loop import until


class Caches:
    """Objects in a cycle, as informers and handlers are."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def no_collections():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    ("function", "run", "error"),
    [
        ("lead", lambda manager: manager._lead(None, None), LeaseLost("why")),
        ("run_without_lease", lambda manager: manager._run_without_election(None), None),
    ],
)
async def test_caches_of_ended_run_are_freed(monkeypatch, no_collections, function, run, error):
    runs = []

    async def work(*_, **__):
        if len(runs) == 2:
            await asyncio.get_running_loop().create_future()
        runs.append(weakref.ref(Caches()))
        if error is not None:
            raise error

    monkeypatch.setattr(app, function, work)
    access = Access(server="http://127.0.0.1:1")
    manager = app.Manager(Config(), clock=SteppedClock(), random=SeededRandom(1), access=access)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(manager))
        await until(lambda: len(runs) == 2)
        await until(lambda: [caches() for caches in runs] == [None, None])
        task.cancel()
