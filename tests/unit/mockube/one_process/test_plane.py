"""The managers of one process, one after another."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from mockube.component_base.clock import ClusterClock
from mockube.controller_manager.control.followed_server import UnusableFlags
from mockube.one_process import plane
from tests.support.event_loop import WAIT_TIMEOUT, until

pytestmark = pytest.mark.thorough

SERVER = SimpleNamespace(transport=None)


class FailingManager:
    """Fails with each of the errors, one manager after another."""

    errors: list[Exception]

    def __init__(self, *_, **__):
        pass

    async def run(self):
        raise self.errors.pop(0)


@asynccontextmanager
async def no_status(*_):
    yield


async def test_manager_is_restarted_unless_it_can_never_start(monkeypatch, caplog):
    monkeypatch.setattr(plane, "Manager", FailingManager)
    monkeypatch.setattr(plane, "serving_status", no_status)
    FailingManager.errors = [RuntimeError("once"), ExceptionGroup("", [UnusableFlags("never")])]
    managers = plane._Managers(None, ClusterClock(), None)
    with pytest.raises(UnusableFlags, match="never"):
        async with asyncio.timeout(WAIT_TIMEOUT):
            await managers._run(SERVER)
    assert [(each.name, each.getMessage()[:18]) for each in caplog.records] == [
        ("mockube.controller_manager.restarts", "The manager failed")
    ]
    assert managers._manager is None


class StubbornManager:
    """Raises an error when it is cancelled, as a task group does whose task fails at that."""

    def __init__(self, *_, **__):
        pass

    async def run(self):
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            raise ExceptionGroup("", [RuntimeError("at its end")])


async def test_manager_that_fails_when_it_is_stopped_is_not_restarted(monkeypatch, caplog):
    monkeypatch.setattr(plane, "Manager", StubbornManager)
    monkeypatch.setattr(plane, "serving_status", no_status)
    managers = plane._Managers(None, ClusterClock(), None)
    async with asyncio.timeout(WAIT_TIMEOUT), managers.running(SERVER):
        await until(lambda: managers._manager is not None)
    assert caplog.messages == []
