"""Everything that a manager runs, begun and ended together, at a real API server."""

import asyncio

import pytest

from apimachinery import meta
from apimachinery.chance import SeededChance
from apimachinery.clock import SteppedClock
from controller_manager.config.command_line import Config
from controller_manager.kinds import CONFIG_MAPS
from controller_manager.runtime.engine import Engine
from controller_manager.runtime.informers import Settings
from controller_manager.runtime.metrics import Metrics
from controller_manager.work import Outfit, Work
from tests.support.apiserver import running
from tests.support.informed import Told
from tests.support.manager_client import client_of
from tests.support.turns import until


class Recorded:
    """An engine that watches ConfigMaps, and writes one more when it is told to end."""

    def __init__(self, context):
        self.client = context.client
        self.told = Told(context.informers.of(CONFIG_MAPS))
        self.fails = asyncio.Event()
        self.began = False

    async def run(self):
        self.began = True
        try:
            await self.fails.wait()
            raise ValueError("why")
        finally:
            made = await self.client.create(CONFIG_MAPS, LAST)
            await until(lambda: f"+{meta.name(made)}" in self.told.words)


LAST = {"metadata": {"namespace": "default", "generateName": "last-"}}


def config_map(name):
    return {"metadata": {"namespace": "default", "name": name}}


@pytest.fixture
async def client():
    async with running() as server, client_of(server.url) as client:
        yield client


@pytest.fixture
def work(client):
    clock = SteppedClock()
    outfit = Outfit(
        client=client,
        clock=clock,
        chance=SeededChance(),
        metrics=Metrics(clock),
        config=Config(),
        informer_settings=Settings(clock=clock, chance=SeededChance()),
    )
    engines = [Engine(name=name, service_account=name, build=Recorded) for name in ("one", "other")]
    return Work(outfit, controllers=[], engines=engines)


async def test_engines_see_what_was_there_before_them(client, work):
    await client.create(CONFIG_MAPS, config_map("first"))
    task = asyncio.create_task(work.run())
    for engine in work.running.values():
        await until(lambda engine=engine: "+first" in engine.told.words)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_at_the_end_each_finishes_what_it_has_in_hand_while_the_caches_still_live(client, work):
    task = asyncio.create_task(work.run())
    await until(lambda: all(engine.began for engine in work.running.values()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len((await client.list(CONFIG_MAPS, "default")).items) == 2


async def test_one_that_fails_ends_all_and_is_named(client, work, caplog):
    task = asyncio.create_task(work.run())
    await until(lambda: all(engine.began for engine in work.running.values()))
    work.running["one"].fails.set()
    with pytest.raises(ExceptionGroup) as failed:
        await task
    assert failed.group_contains(ValueError, match="why")
    assert "one failed" in caplog.messages
    assert "other failed" not in caplog.messages
    assert len((await client.list(CONFIG_MAPS, "default")).items) == 2


async def test_without_anything_to_do_it_waits(work):
    work.running.clear()
    task = asyncio.create_task(work.run())
    await until(lambda: len(asyncio.all_tasks()) > 3)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
