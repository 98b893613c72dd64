"""Supervise the background tasks of a server.

An error of a task is logged with its traceback and counted. The task is then restarted from a clean state after a delay.
If the server cannot continue without it, the server ends instead: the check of the task fails in `/readyz` and `/livez`,
the block of `running` is cancelled, and `TaskFailed` is raised from it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from typing import Final

from .clock import Clock
from .metrics import MetricsRegistry, counter
from .supervision import RestartBackoff, cancel_and_wait, error_unless_cancelled, run_endlessly

LOG = logging.getLogger(__name__)

Work = Callable[[], Coroutine[None, None, None]]
"""Called at each start; the coroutine that it returns begins from a clean state."""

TASK_RESTARTS: Final = counter(
    "mockube_task_restarts_total", "Background tasks that failed unexpectedly and were restarted.", "task"
)
FIRST_DELAY: Final = 0.1
"""Seconds before the first restart; each further delay is twice as long."""
MAX_DELAY: Final = 30.0
HEALTHY_AFTER: Final = 60.0
"""Seconds that a task must run before its restart delay is reset."""


class OnFailure(Enum):
    RESTART = "restart"
    END = "end"
    """The server ends with an error."""


class TaskFailed(Exception):
    """A task without which the server cannot continue raised an error, which is the cause of this one."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"the task {name!r} failed, so the server ends: {type(error).__name__}: {error}")


class TaskSupervisor:
    """Runs tasks within the block of `running`; `policies` has the names of all of them."""

    def __init__(self, clock: Clock, policies: Mapping[str, OnFailure], metrics: MetricsRegistry) -> None:
        self._clock = clock
        self._policies = policies
        self._group: asyncio.TaskGroup | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._problems: dict[str, str] = {}
        """By name, why a task does not run now."""
        self._restarts = metrics.numbers(TASK_RESTARTS)
        for name, on_failure in policies.items():
            if on_failure is OnFailure.RESTART:
                self._restarts.of(name)
        self._failure: TaskFailed | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run tasks within the block, then cancel them and wait for them. Raise `TaskFailed`, or the error of the block."""
        raised: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as self._group:
                try:
                    yield
                except BaseException as error:
                    raised = error
                    raise
                finally:
                    for task in self._tasks:
                        task.cancel()
        except BaseExceptionGroup:  # the group wraps what the block or a task raised
            if self._failure is not None:
                raise self._failure from self._failure.__cause__
            if raised is not None:
                raise raised  # noqa: B904 - it is the same error, unwrapped
            raise
        finally:
            self._group = None
            self._tasks.clear()

    def start(self, name: str, work: Work) -> None:
        _ = self._start(name, work)

    @asynccontextmanager
    async def run_in_block(self, name: str, work: Work) -> AsyncIterator[None]:
        """Run a task within a block that ends before that of `running`."""
        task = self._start(name, work)
        try:
            yield
        finally:
            await cancel_and_wait([task])

    def _start(self, name: str, work: Work) -> asyncio.Task[None]:
        assert self._group is not None
        is_restarted = self._policies[name] is OnFailure.RESTART
        run = self._run_with_restarts if is_restarted else self._run_until_failure
        task = self._group.create_task(run(name, work), name=name)
        self._tasks.append(task)
        return task

    def problem(self, name: str) -> str:
        """Return why a task does not run; "" if it runs."""
        return self._problems.get(name, "")

    async def _run_until_failure(self, name: str, work: Work) -> None:
        try:
            await run_endlessly(work())
        except Exception as error:
            LOG.critical("The task %r failed, and the server ends", name, exc_info=error)
            self._problems[name] = f"{type(error).__name__}: {error}"
            self._failure = TaskFailed(name, error)
            raise self._failure from error

    async def _run_with_restarts(self, name: str, work: Work) -> None:
        backoff = RestartBackoff(
            self._clock, first_delay=FIRST_DELAY, max_delay=MAX_DELAY, healthy_after=HEALTHY_AFTER
        )
        while True:
            backoff.begin()
            error = await error_unless_cancelled(work())
            delay = backoff.next_delay()
            LOG.error("The task %r failed and restarts in %g s", name, delay, exc_info=error)
            self._problems[name] = f"{type(error).__name__}: {error}"
            await self._clock.sleep(delay)
            self._restarts.add(1, name)
            del self._problems[name]
