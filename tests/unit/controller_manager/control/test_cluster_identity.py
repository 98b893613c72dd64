"""Work ends when the UID of kube-system changes, and not on other namespace changes."""

import asyncio

import pytest

from mockube.client.cache.informer import Informer
from mockube.client.kinds import NAMESPACES
from mockube.controller_manager.control.cluster_identity import ClusterIdentity
from tests.support.event_loop import until, yield_to_loop

WAIT_TIMEOUT = 10.0


def namespace(name, uid, version=1):
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}}


SYSTEM = namespace("kube-system", "first")


class Work:
    """Work that ends after its cancellation, when `done` is set."""

    def __init__(self):
        self.began = False
        self.ended = False
        self.done = asyncio.Event()
        self.done.set()

    async def run(self):
        self.began = True
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self.done.wait()
            self.ended = True


@pytest.fixture
def namespaces(clock):
    return Informer(NAMESPACES, clock=clock)


@pytest.fixture
def work():
    return Work()


@pytest.fixture
async def running_work(namespaces, work, clock):
    identity = ClusterIdentity(namespaces)
    task = asyncio.create_task(
        identity.run_until_changed(work.run(), clock=clock, shutdown_timeout=WAIT_TIMEOUT)
    )
    await namespaces.replace([SYSTEM], 1)
    await until(lambda: work.began)
    yield task
    work.done.set()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("how", ["list", "watch"])
async def test_work_ends_when_uid_of_kube_system_changes(namespaces, work, running_work, caplog, how):
    other = namespace("kube-system", "second", 9)
    if how == "list":
        await namespaces.replace([other], 9)
    else:
        namespaces.remove(SYSTEM)
        namespaces.put(other)
    await running_work
    assert work.ended
    assert "had uid first and has second" in caplog.text


async def test_other_namespace_changes_do_not_end_work(namespaces, work, running_work):
    namespaces.put(namespace("kube-system", "first", 2))
    namespaces.put(namespace("other", "one", 3))
    namespaces.put(namespace("other", "two", 4))
    await namespaces.replace([namespace("kube-system", "first", 5)], 5)
    await yield_to_loop(5)
    assert not running_work.done()
    assert not work.ended


async def test_current_keys_are_finished(namespaces, work, running_work):
    work.done.clear()
    namespaces.put(namespace("kube-system", "second", 2))
    await yield_to_loop(5)
    assert not running_work.done()
    work.done.set()
    await running_work
    assert work.ended


async def test_work_that_does_not_end_in_time_is_cancelled(namespaces, work, running_work, clock, caplog):
    work.done.clear()
    namespaces.put(namespace("kube-system", "second", 2))
    await yield_to_loop(5)
    clock.advance(WAIT_TIMEOUT)
    await running_work
    assert not work.ended
    assert "are cancelled" in caplog.text


async def test_cancellations_reach_the_work(work, running_work):
    work.done.clear()
    running_work.cancel()
    await yield_to_loop(5)
    assert not running_work.done()
    running_work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running_work
    assert not work.ended


async def test_error_of_work_is_raised(namespaces, clock):
    async def fail():
        raise ValueError("why")

    identity = ClusterIdentity(namespaces)
    with pytest.raises(ValueError, match="why"):
        await identity.run_until_changed(fail(), clock=clock, shutdown_timeout=WAIT_TIMEOUT)
