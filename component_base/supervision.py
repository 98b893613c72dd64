"""Start and end tasks, so that none of them ends unnoticed.

The error of a task is logged once, with its traceback and the names of the tasks that it passes through, and raised to
the caller that awaits the task. The tasks of a server that are restarted instead have a `TaskSupervisor`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

from .clock import Clock

LOG: Final = logging.getLogger(__name__)

_T = TypeVar("_T")
_NOTE: Final = "in the task "


def start(
    name: str,
    work: Coroutine[Any, Any, _T],
    *,
    group: asyncio.TaskGroup | None = None,
    on_failure: Callable[[str, Exception], None] = lambda _, __: None,
    endless: bool = False,
) -> asyncio.Task[_T]:
    """Start a task that the group or the caller awaits.

    An `endless` task fails if it ends without being cancelled.
    """
    coroutine = _report_end(name, work, on_failure, endless=endless)
    try:
        task = (
            asyncio.create_task(coroutine, name=name)
            if group is None
            else group.create_task(coroutine, name=name)
        )
    except RuntimeError:  # the group is ending
        coroutine.close()
        work.close()
        raise
    task.add_done_callback(partial(_on_end, work))
    return task


async def run_to_end(name: str, work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of work that goes on to its end if the caller is cancelled, as a request at its deadline."""
    return await asyncio.shield(start(name, work))


def _on_end(work: Coroutine[Any, Any, Any], task: "asyncio.Task[Any]") -> None:
    work.close()  # a task that is cancelled before it begins does not await it
    if not task.cancelled():
        task.exception()  # it was logged, even if nobody awaits the task


def start_in(
    group: asyncio.TaskGroup, name: str, work: Coroutine[Any, Any, None], *, endless: bool = False
) -> None:
    """Start a task that only the group waits for."""
    _ = start(name, work, group=group, endless=endless)


async def _report_end(
    name: str,
    work: Coroutine[Any, Any, _T],
    on_failure: Callable[[str, Exception], None],
    *,
    endless: bool,
) -> _T:
    try:
        result = await refuse_inner_cancellation(work)
        if endless and not is_cancelled():
            raise RuntimeError("it returned, but should run until it is cancelled")  # noqa: TRY301 - a failure, too
        return result  # noqa: TRY300 - an endless task that ends has failed too
    except Exception as error:
        log_failure(name, error)
        on_failure(name, error)
        raise


def log_failure(name: str, error: Exception) -> None:
    """Log the error with its traceback, unless a task has done that, and note the name in it."""
    leaf_errors = _leaf_errors(error)
    if not any(_is_noted(leaf_error) for leaf_error in leaf_errors):
        LOG.error("%s failed", name, exc_info=error)
    for leaf_error in leaf_errors:
        leaf_error.add_note(f"{_NOTE}{name}")


async def refuse_inner_cancellation(work: Coroutine[Any, Any, _T]) -> _T:
    """Raise an error if the work ends as cancelled but its task was not: asyncio would take the task for cancelled."""
    try:
        return await work
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise RuntimeError("something that it awaited was cancelled") from error


async def run_endlessly(work: Coroutine[Any, Any, None]) -> NoReturn:
    """Run work that should go on until it is cancelled: it is an error if it returns."""
    await refuse_inner_cancellation(work)
    raise RuntimeError("it returned, but should run until it is cancelled")


async def error_unless_cancelled(work: Coroutine[Any, Any, None]) -> Exception:
    """Return the error with which endless work ends, which can then be restarted, unless the task is cancelled."""
    try:
        await run_endlessly(work)
    except Exception as error:
        if is_cancelled():  # a task group raises its tasks' errors instead of the cancellation
            raise asyncio.CancelledError from error
        return error


def is_cancelled() -> bool:
    """Return whether the current task was cancelled, as opposed to something that it awaits."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def first_cause(error: BaseException) -> BaseException:
    """Return the first error within nested exception groups."""
    return _leaf_errors(error)[0]


def _leaf_errors(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf_error for inner_error in error.exceptions for leaf_error in _leaf_errors(inner_error)]
    return [error]


def _is_noted(error: BaseException) -> bool:
    return any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ()))


class RestartBackoff:
    """The delays before restarts: each is twice as long as the one before, until something has run for long enough."""

    def __init__(self, clock: Clock, *, first_delay: float, max_delay: float, healthy_after: float) -> None:
        self._clock = clock
        self._first_delay = first_delay
        self._max_delay = max_delay
        self._healthy_after = healthy_after
        self._delay = first_delay
        self._started = 0.0

    def begin(self) -> None:
        """Note the time of a start."""
        self._started = self._clock.monotonic()

    def next_delay(self) -> float:
        """Return the delay before the next start, after a failure."""
        if self._clock.monotonic() - self._started >= self._healthy_after:
            self._delay = self._first_delay
        delay, self._delay = self._delay, min(2 * self._delay, self._max_delay)
        return delay


@asynccontextmanager
async def timeout(clock: Clock, seconds: float) -> AsyncIterator[None]:
    """Cancel the block after `seconds`, and raise `TimeoutError`."""
    task = asyncio.current_task()
    assert task is not None
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    cancellations_before = task.cancelling()
    timer = clock.call_later(seconds, expire)
    try:
        yield
    except asyncio.CancelledError:
        if expired and task.uncancel() <= cancellations_before:
            raise TimeoutError(f"not done within {seconds:g} seconds") from None
        raise
    finally:
        timer.cancel()


async def run_all(**runs: Coroutine[None, None, None]) -> None:
    """Run all until cancelled, or until one fails: then cancel and await the others, and raise its error."""
    await wait_for_all([start(name, run, endless=True) for name, run in runs.items()])


async def wait_for_all(tasks: "Sequence[asyncio.Task[None]]") -> None:
    """Wait until all tasks have ended, or one fails: then cancel and await the others, and raise its error."""
    try:
        await first_failure(tasks)
    finally:
        await cancel_and_wait(tasks)


async def cancel_and_wait(tasks: "Sequence[asyncio.Task[Any]]") -> None:
    """Cancel the tasks and wait until all have ended. A second cancellation of the caller cancels them again."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def run_with(work: Coroutine[Any, Any, _T], *, background_tasks: "Sequence[asyncio.Task[Any]]") -> _T:
    """Return the result of the work, or raise the error of a background task that fails first. Cancels all of them."""
    main = asyncio.create_task(work)  # its error is raised here, and logged by the caller's task
    pending: set[asyncio.Task[Any]] = {main, *background_tasks}
    try:
        while not main.done():
            ended, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        return main.result()
    finally:
        await cancel_and_wait([main, *background_tasks])


async def wait_first(*works: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of the coroutines is done, cancel and await the others, and raise its error."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        await cancel_and_wait(tasks)


async def run_until(end: Coroutine[Any, Any, Any], work: Coroutine[Any, Any, _T]) -> _T | None:
    """Return the result of the work; cancel it and return None if `end` returns before that."""
    worker, ending = asyncio.create_task(work), asyncio.create_task(end)
    try:
        await asyncio.wait({worker, ending}, return_when=asyncio.FIRST_COMPLETED)
        if worker.done():
            return worker.result()
        ending.result()
        return None
    finally:
        await cancel_and_wait([worker, ending])


async def first_failure(tasks: "Sequence[asyncio.Task[None]]") -> None:
    """Wait until a task fails, and raise its error, or until all have ended."""
    if not tasks:
        await asyncio.get_running_loop().create_future()
    ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in ended:
        task.result()
