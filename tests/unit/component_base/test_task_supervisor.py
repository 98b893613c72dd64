"""A background task that fails is restarted or ends the server; no failure is silent."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.task_supervisor import (
    FIRST_DELAY,
    HEALTHY_AFTER,
    MAX_DELAY,
    OnFailure,
    TaskFailed,
    TaskSupervisor,
)
from tests.support.event_loop import WAIT_TIMEOUT, until, yield_to_loop
from tests.support.metric_samples import sample_value

TASK = "compaction"
POLICIES = {TASK: OnFailure.RESTART, "store": OnFailure.END}


class FailingWork:
    """Work whose current run fails when `failing` is set."""

    def __init__(self):
        self.starts = 0
        self.failing = asyncio.Event()

    async def run(self):
        self.starts += 1
        await self.failing.wait()
        self.failing.clear()
        raise RuntimeError("broken")


class SupervisedWork:
    def __init__(self):
        self.clock = SteppedClock()
        self.registry = MetricsRegistry()
        self.supervisor = TaskSupervisor(self.clock, POLICIES, self.registry)
        self.work = FailingWork()

    def restarts(self):
        return sample_value(self.registry, "mockube_task_restarts_total", {"task": TASK})

    async def fail(self):
        self.work.failing.set()
        await until(lambda: self.supervisor.problem(TASK))


@pytest.fixture
def supervised():
    return SupervisedWork()


async def fails_when_cancelled():
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise RuntimeError("broken") from None


async def test_task_that_fails_on_cancellation_is_stopped(supervised):
    started = asyncio.Event()

    async def work():
        async with asyncio.TaskGroup() as group:
            group.create_task(fails_when_cancelled())
            started.set()

    async with asyncio.timeout(WAIT_TIMEOUT), supervised.supervisor.running():
        supervised.supervisor.start(TASK, work)
        await started.wait()
        await yield_to_loop(3)
    assert supervised.restarts() == 0.0


async def test_failed_task_is_logged_counted_and_restarted(supervised, caplog):
    async with supervised.supervisor.running():
        supervised.supervisor.start(TASK, supervised.work.run)
        await until(lambda: supervised.work.starts == 1)
        assert (supervised.supervisor.problem(TASK), supervised.restarts()) == ("", 0.0)
        await supervised.fail()
        assert supervised.supervisor.problem(TASK) == "RuntimeError: broken"
        (record,) = caplog.records
        assert record.exc_info[1].args == ("broken",)
        supervised.clock.advance(FIRST_DELAY)
        await until(lambda: supervised.work.starts == 2)
        assert (supervised.supervisor.problem(TASK), supervised.restarts()) == ("", 1.0)


async def test_restart_delay_doubles_to_maximum_and_resets(supervised):
    delays = []
    async with supervised.supervisor.running():
        supervised.supervisor.start(TASK, supervised.work.run)
        for start in range(12):
            await until(lambda start=start: supervised.work.starts == start + 1)
            await supervised.fail()
            delays.append(supervised.clock.next_due())
            supervised.clock.advance(delays[-1])
        await until(lambda: supervised.work.starts == 13)
        supervised.clock.advance(HEALTHY_AFTER)
        await supervised.fail()
        delays.append(supervised.clock.next_due())
    assert delays[:3] == pytest.approx([FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY])
    assert delays[-2:] == pytest.approx([MAX_DELAY, FIRST_DELAY])


async def return_at_once():
    """Return at once."""


async def await_cancelled_future():
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


@pytest.mark.parametrize("work", [return_at_once, await_cancelled_future])
async def test_task_that_returns_is_restarted(supervised, work):
    async with supervised.supervisor.running():
        supervised.supervisor.start(TASK, work)
        await until(lambda: supervised.supervisor.problem(TASK))


async def test_failure_of_essential_task_ends_block(supervised, caplog):
    problems = []

    async def block():
        async with supervised.supervisor.running():
            supervised.supervisor.start("store", supervised.work.run)
            supervised.work.failing.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                problems.append(supervised.supervisor.problem("store"))

    with pytest.raises(TaskFailed, match="the task 'store' failed, so the server ends: RuntimeError: broken"):
        await block()
    assert problems == ["RuntimeError: broken"]
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]


async def test_error_of_block_is_raised_unchanged(supervised):
    async def block():
        async with supervised.supervisor.running():
            supervised.supervisor.start(TASK, supervised.work.run)
            await yield_to_loop(2)
            raise OSError("no port")

    with pytest.raises(OSError, match="no port"):
        await block()


async def test_all_tasks_end_with_block(supervised):
    async with supervised.supervisor.running():
        supervised.supervisor.start(TASK, supervised.work.run)
        await until(lambda: supervised.work.starts)
    assert len(asyncio.all_tasks()) == 1
