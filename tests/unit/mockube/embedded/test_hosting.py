"""An asynchronous context manager that runs in its own thread."""

import asyncio
import gc
import threading
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager

import pytest

from mockube.embedded.background_loop import BackgroundContext
from mockube.failure import Failure
from tests.support.event_loop import WAIT_TIMEOUT


@asynccontextmanager
async def record_lifetime(done):
    done.append("opened")
    try:
        yield asyncio.get_running_loop()
    finally:
        done.append("closed")


@asynccontextmanager
async def run_in_background(task):
    async with asyncio.TaskGroup() as group:
        group.create_task(task)
        yield


async def fail():
    raise ZeroDivisionError


async def thread():
    return threading.current_thread().name


@pytest.mark.thorough
def test_hosted_run_is_open_until_closed():
    done = []
    context = BackgroundContext(lambda: record_lifetime(done), name="hosted")
    context.start()
    loop = context.opened.result(timeout=WAIT_TIMEOUT)
    assert context.submit(thread()).result(timeout=WAIT_TIMEOUT) == "hosted"
    assert context.call(lambda: 7) == 7
    assert done == ["opened"]
    context.close()
    context.close()
    assert done == ["opened", "closed"]
    assert loop.is_closed()
    assert "hosted" not in {one.name for one in threading.enumerate()}
    assert context.submit(thread()).cancelled()
    with pytest.raises(Failure, match="stopped"):
        context.call(lambda: 7)


@pytest.mark.thorough
def test_error_before_opening_is_raised():
    @asynccontextmanager
    async def broken():
        raise ZeroDivisionError
        yield

    context = BackgroundContext(broken, name="hosted")
    context.start()
    with pytest.raises(ZeroDivisionError):
        context.opened.result(timeout=WAIT_TIMEOUT)
    context.close()


@pytest.mark.thorough
def test_error_of_task_is_raised_at_end():
    context = BackgroundContext(lambda: run_in_background(fail()), name="hosted")
    context.start()
    with pytest.raises(ExceptionGroup):
        context.ended.result(timeout=WAIT_TIMEOUT)
    with pytest.raises(ExceptionGroup):
        context.close()
    assert context.submit(thread()).cancelled()


@pytest.mark.thorough
def test_error_of_submitted_work_is_raised():
    context = BackgroundContext(lambda: record_lifetime([]), name="hosted")
    context.start()
    context.opened.result(timeout=WAIT_TIMEOUT)
    with pytest.raises(ZeroDivisionError):
        context.submit(fail()).result(timeout=WAIT_TIMEOUT)
    assert context.call(lambda: 7) == 7
    context.close()


@pytest.mark.thorough
def test_hosted_run_may_be_closed_before_opening():
    @asynccontextmanager
    async def wait_before_yield():
        await asyncio.get_running_loop().create_future()
        yield

    context = BackgroundContext(wait_before_yield, name="hosted")
    context.close()
    context.start()
    context.stop()
    with pytest.raises((asyncio.CancelledError, CancelledError)):
        context.opened.result(timeout=WAIT_TIMEOUT)
    context.close()


@pytest.fixture
def restored_collection():
    was_enabled = gc.isenabled()
    yield
    (gc.enable if was_enabled else gc.disable)()


@pytest.mark.thorough
@pytest.mark.usefixtures("restored_collection")
def test_failed_start_enables_garbage_collection():
    @asynccontextmanager
    async def broken():
        assert not gc.isenabled()
        raise ZeroDivisionError
        yield

    gc.enable()
    context = BackgroundContext(broken, name="hosted")
    context.start()
    with pytest.raises(ZeroDivisionError):
        context.opened.result(timeout=WAIT_TIMEOUT)
    assert gc.isenabled()


@pytest.mark.thorough
@pytest.mark.usefixtures("restored_collection")
def test_block_opens_without_garbage_collection():
    states = []

    @asynccontextmanager
    async def block():
        states.append(gc.isenabled())
        yield

    gc.enable()
    context = BackgroundContext(block, name="hosted")
    context.start()
    context.opened.result(timeout=WAIT_TIMEOUT)
    states.append(gc.isenabled())
    context.close()
    assert states == [False, True]
