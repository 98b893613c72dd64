"""An error of a manager's task is logged once and is raised to the caller that waits for the task."""

import asyncio
import gc
import inspect

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.component_base.supervision import (
    first_cause,
    run_all,
    run_to_end,
    run_until,
    run_with,
    start,
    start_in,
    timeout,
)
from tests.support.event_loop import until, yield_to_loop


async def raise_error():
    raise ValueError("why")


async def return_at_once():
    """Return at once."""


async def test_error_is_logged_once_with_traceback_and_tasks(caplog):
    async def inner():
        async with asyncio.TaskGroup() as group:
            start_in(group, "leaf", raise_error())

    failures = []
    outer = start("outer", inner(), on_failure=lambda name, _: failures.append(name))
    with pytest.raises(ExceptionGroup) as raised:
        await outer
    (record,) = caplog.records
    assert (record.getMessage(), str(record.exc_info[1])) == ("leaf failed", "why")
    assert first_cause(raised.value).__notes__ == ["in the task leaf", "in the task outer"]
    assert failures == ["outer"]


async def test_unawaited_task_logs_its_error_once(caplog):
    failures = []
    task = start("leaf", raise_error(), on_failure=lambda name, _: failures.append(name))
    await until(task.done)
    del task
    await yield_to_loop(2)  # the event loop calls the task's callbacks, and forgets the task
    gc.collect()  # asyncio logs here an exception that was not retrieved
    assert (failures, caplog.messages) == (["leaf"], ["leaf failed"])


async def test_unexpected_return_is_a_failure(caplog):
    with pytest.raises(RuntimeError, match="it returned"):
        await start("engine", return_at_once(), endless=True)
    assert caplog.messages == ["engine failed"]


async def test_unexpected_return_in_group_is_a_failure(caplog):
    async def run():
        async with asyncio.TaskGroup() as group:
            start_in(group, "engine", return_at_once(), endless=True)
            await asyncio.get_running_loop().create_future()

    with pytest.raises(ExceptionGroup) as raised:
        await run()
    assert str(first_cause(raised.value)) == "it returned, but should run until it is cancelled"
    assert caplog.messages == ["engine failed"]


async def await_cancelled_future():
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def test_cancellation_of_what_a_task_awaits_is_a_failure(caplog):
    """asyncio ignores cancelled tasks of a group, so this one would end unnoticed."""
    with pytest.raises(RuntimeError, match="something that it awaited was cancelled"):
        await start("engine", await_cancelled_future())
    with pytest.raises(RuntimeError, match="something that it awaited was cancelled"):
        await run_all(engine=await_cancelled_future(), other=wait_forever())
    assert caplog.messages == ["engine failed", "engine failed"]


async def test_return_after_cancellation_is_no_failure(caplog):
    async def run():
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return

    task = start("engine", run(), endless=True)
    await until(lambda: task.get_coro().cr_await is not None)
    task.cancel()
    await task
    assert not caplog.records


async def test_unstarted_work_is_closed():
    work = raise_error()
    task = start("engine", work)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED, (
        "Python warns about a coroutine that is not awaited"
    )


async def start_too_late(work):
    async with asyncio.TaskGroup() as group:
        start_in(group, "first", raise_error())
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            start_in(group, "second", work)


async def test_work_for_ending_group_is_closed():
    work = raise_error()
    with pytest.raises(ExceptionGroup) as raised:
        await start_too_late(work)
    assert {type(error) for error in raised.value.exceptions} == {ValueError, RuntimeError}
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED


async def wait_forever():
    await asyncio.get_running_loop().create_future()


async def test_work_returns_result_and_cancels_background_tasks():
    async def work():
        return 5

    beside = start("beside", wait_forever())
    assert await run_with(work(), background_tasks=[beside]) == 5
    assert beside.cancelled()


async def test_failed_background_task_cancels_work(caplog):
    cancelled = []

    async def work():
        try:
            await wait_forever()
        finally:
            cancelled.append(True)

    other = start("other", wait_forever())
    with pytest.raises(ValueError, match="why"):
        await run_with(
            work(), background_tasks=[start("ended", return_at_once()), other, start("beside", raise_error())]
        )
    assert cancelled == [True]
    assert other.cancelled()
    assert caplog.messages == ["beside failed"]


async def test_work_is_cancelled_by_its_end():
    async def work():
        return 5

    assert await run_until(wait_forever(), work()) == 5
    assert await run_until(return_at_once(), wait_forever()) is None
    for end, failing in ((raise_error(), wait_forever()), (wait_forever(), raise_error())):
        with pytest.raises(ValueError, match="why"):
            await run_until(end, failing)


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["only late", "cancelled too"])
async def test_timeout_does_not_hide_cancellation(is_cancelled):
    clock = SteppedClock()

    async def work():
        async with timeout(clock, 5):
            await wait_forever()

    task = asyncio.create_task(work())
    await until(lambda: clock.next_due() is not None)
    clock.advance(5)
    if is_cancelled:
        task.cancel()
    await until(task.done)
    assert task.cancelled() == is_cancelled
    if not is_cancelled:
        with pytest.raises(TimeoutError, match="not done within 5 seconds"):
            task.result()


async def test_work_that_runs_to_its_end_outlives_its_caller():
    may_end, ends = asyncio.Event(), []

    async def work():
        await may_end.wait()
        ends.append("end")
        return 7

    caller = asyncio.create_task(run_to_end("work", work()))
    await yield_to_loop(3)
    caller.cancel()
    await until(caller.done)
    assert (caller.cancelled(), ends) == (True, [])
    may_end.set()
    await until(lambda: ends)
    assert await run_to_end("work", work()) == 7
