"""All runnables of a manager are started and stopped together, with a real API server."""

import asyncio

import pytest
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import SeededRandom
from mockube.client.cache.informer import InformerSettings
from mockube.client.kinds import CONFIG_MAPS, SERVICE_ACCOUNTS
from mockube.client.metrics.process import Metrics
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.control.runnable import Runnable
from mockube.controller_manager.running import Dependencies, ManagerRun
from tests.support.controllers.informers import RecordedChanges
from tests.support.controllers.manager_client import client_of
from tests.support.event_loop import WAIT_TIMEOUT, until
from tests.support.server.apiserver import running


class RecordingRunnable:
    """A runnable that watches ConfigMaps, and writes another one when it is stopped."""

    def __init__(self, context):
        self.client = context.client
        self.changes = RecordedChanges(context.informers.of(CONFIG_MAPS))
        self.fails = asyncio.Event()
        self.began = False

    async def run(self):
        self.began = True
        try:
            await self.fails.wait()
            raise ValueError("why")
        finally:
            created = await self.client.create(CONFIG_MAPS, LAST)
            await until(lambda: f"+{meta.name(created)}" in self.changes.words)


LAST = {"metadata": {"namespace": "default", "generateName": "last-"}}


def config_map(name):
    return {"metadata": {"namespace": "default", "name": name}}


@pytest.fixture
async def client():
    async with running() as server, client_of(server.url) as client:
        yield client


@pytest.fixture
def work(client):
    return work_of(client)


def work_of(client):
    clock = SteppedClock()
    outfit = Dependencies(
        client=client,
        clock=clock,
        random=SeededRandom(),
        metrics=Metrics(clock),
        config=Config(),
        informer_settings=InformerSettings(clock=clock, random=SeededRandom()),
    )
    runnables = [
        Runnable(name=name, service_account=name, build=RecordingRunnable) for name in ("one", "other")
    ]
    return ManagerRun(outfit, controllers=[], runnables=runnables)


async def test_runnables_see_existing_objects(client, work):
    await client.create(CONFIG_MAPS, config_map("first"))
    task = asyncio.create_task(work.run())
    for engine in work.runners.values():
        await until(lambda engine=engine: "+first" in engine.changes.words)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_runnables_finish_current_work_while_caches_are_live(client, work):
    task = asyncio.create_task(work.run())
    await until(lambda: all(engine.began for engine in work.runners.values()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len((await client.list(CONFIG_MAPS, "default")).items) == 2


async def test_failed_runnable_ends_all_and_is_named(client, work, caplog):
    task = asyncio.create_task(work.run())
    await until(lambda: all(engine.began for engine in work.runners.values()))
    work.runners["one"].fails.set()
    with pytest.raises(ValueError, match="why"):
        await task
    assert "one failed" in caplog.messages
    assert "other failed" not in caplog.messages
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [True]
    assert (work.problem("one"), work.problem("other")) == ("ValueError: why", "")
    assert len((await client.list(CONFIG_MAPS, "default")).items) == 2


async def test_service_accounts_are_created_when_controllers_start():
    """As upstream, which does not wait for a controller's first request."""
    async with running() as server, client_of(server.url, use_service_account_credentials=True) as client:
        task = asyncio.create_task(work_of(client).run())
        names = set()
        while not names >= {"one", "other"}:
            names = {account["metadata"]["name"] for account in await accounts_of(client)}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class ClientWithoutLists:
    """A client with own accounts for controllers whose lists are broken; the informers have another client."""

    needs_service_accounts = True

    def __init__(self, client):
        self.for_service_account = client.for_service_account

    async def list(self, *_):
        raise ValueError("why")


async def test_failed_creation_of_service_accounts_ends_manager(client, work, caplog):
    work._dependencies = replace(work._dependencies, client=ClientWithoutLists(client))
    with pytest.raises(ValueError, match="why"):
        await work.run()
    assert "service-accounts failed" in caplog.messages
    assert work.problem("service-accounts") == "ValueError: why"


async def test_service_accounts_are_not_created_without_credentials_of_their_own(client, work):
    task = asyncio.create_task(work.run())
    await until(lambda: all(engine.began for engine in work.runners.values()))
    assert await accounts_of(client) == []
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def accounts_of(client):
    return (await client.list(SERVICE_ACCOUNTS, "kube-system")).items


async def test_manager_without_runnables_waits(work):
    work.runners.clear()
    task = asyncio.create_task(work.run())
    await until(lambda: len(asyncio.all_tasks()) > 3)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("part", ["informers", "events"])
async def test_failed_support_task_ends_all_and_is_named(work, part):
    async def fail():
        raise ValueError("why")

    work.services[part] = fail
    with pytest.raises(ValueError, match="why"):
        await work.run()
    assert work.problem(part) == "ValueError: why"


@pytest.mark.parametrize("part", ["informers", "events"])
async def test_current_work_is_cancelled_when_support_task_fails(work, part):
    """It may wait for a cache that receives no more events."""
    fails = asyncio.Event()

    async def fail():
        await fails.wait()
        raise ValueError("why")

    class WaitingRunnable:
        async def run(self):
            try:
                fails.set()
                await asyncio.get_running_loop().create_future()
            finally:
                await asyncio.get_running_loop().create_future()

    work.runners["one"] = WaitingRunnable()
    work.services[part] = fail
    with pytest.raises(ValueError, match="why"):
        await asyncio.wait_for(work.run(), WAIT_TIMEOUT)
    assert (work.problem(part), work.problem("one")) == ("ValueError: why", "")


async def test_runnable_that_returns_has_failed(work):
    class ReturningRunnable:
        async def run(self):
            """At once."""

    work.runners["one"] = ReturningRunnable()
    with pytest.raises(RuntimeError, match="it returned"):
        await work.run()
    assert "it returned" in work.problem("one")


async def test_failed_handler_is_skipped_for_that_object(client, work, caplog):
    """The informers and all other handlers continue; the error is logged once for each version of the object."""

    def fail(change):
        if meta.name(change.last_known) == "first":
            raise ValueError("why")

    work.runners.clear()
    informer = work.informers.of(CONFIG_MAPS)
    informer.add_handler(fail)
    changes = RecordedChanges(informer)
    await client.create(CONFIG_MAPS, config_map("first"))
    task = asyncio.create_task(work.run())
    try:
        await informer.wait_synced()
        await client.create(CONFIG_MAPS, config_map("second"))
        await until(lambda: changes.words == ["+first", "+second"])
        assert not work.problem("informers")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    (logged,) = [record.getMessage() for record in caplog.records if record.exc_info]
    assert "configmaps default/first" in logged
