"""Supervise the background tasks of a server.

An error of a task is logged with its traceback and counted. The task is then restarted from a clean state after a delay.
If the server cannot continue without it, the server ends instead: the check of the task fails in `/readyz` and `/livez`,
the block of `running` is cancelled, and `TaskFailed` is raised from it. `TASKS` has the policy of each task.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from typing import Final

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.component_base.clock import Clock

LOG = logging.getLogger(__name__)

Work = Callable[[], Coroutine[None, None, None]]
"""Called at each start; the coroutine that it returns begins from a clean state."""

FIRST_DELAY: Final = 0.1
"""Seconds before the first restart; each further delay is twice as long."""
MAX_DELAY: Final = 30.0
HEALTHY_AFTER: Final = 60.0
"""Seconds that a task must run before its restart delay is reset."""


class OnFailure(Enum):
    RESTART = "restart"
    END = "end"
    """The server ends with an error."""


TASKS: Final[Mapping[str, OnFailure]] = {
    "watch-cache": OnFailure.RESTART,
    "watch-cache-lag": OnFailure.RESTART,
    "api-service-availability": OnFailure.RESTART,
    "api-service-registration": OnFailure.RESTART,
    "flow-schema-status": OnFailure.RESTART,
    "system-objects": OnFailure.RESTART,
    "crd-establishing": OnFailure.RESTART,
    "authentication-config": OnFailure.RESTART,
    "authentication-trust": OnFailure.RESTART,
    "serving-certificates": OnFailure.RESTART,
    "authorization-config": OnFailure.RESTART,
    "compaction": OnFailure.RESTART,
    "identity-lease": OnFailure.RESTART,
    "kubernetes-endpoints": OnFailure.RESTART,
    "watch-cache-check": OnFailure.RESTART,
    "bootstrap-roles": OnFailure.RESTART,
    "listeners": OnFailure.RESTART,
    "store": OnFailure.END,
}


def is_restarted(name: str) -> bool:
    return TASKS[name] is OnFailure.RESTART


def check_name(name: str) -> str:
    """Return the name of a task's check in `/readyz`."""
    return f"task-{name}"


class TaskFailed(Exception):
    """A task without which the server cannot continue raised an error, which is the cause of this one."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"the task {name!r} failed, so the server ends: {type(error).__name__}: {error}")


class TaskSupervisor(Collector):
    """Runs the tasks of `TASKS` within the block of `running`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._group: asyncio.TaskGroup | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._problems: dict[str, str] = {}
        """By name, why a task does not run now."""
        self._restarts: Counter[str] = Counter({name: 0 for name in TASKS if is_restarted(name)})
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
            task.cancel()
            await asyncio.wait([task])

    def _start(self, name: str, work: Work) -> asyncio.Task[None]:
        assert self._group is not None
        run = self._run_with_restarts if is_restarted(name) else self._run_until_failure
        task = self._group.create_task(run(name, work), name=name)
        self._tasks.append(task)
        return task

    def problem(self, name: str) -> str:
        """Return why a task does not run; "" if it runs."""
        return self._problems.get(name, "")

    def collect(self) -> Iterable[Metric]:
        restarts = CounterMetricFamily(
            "mockube_task_restarts", "Background tasks that failed and were restarted.", labels=["task"]
        )
        for name, count in self._restarts.items():
            restarts.add_metric([name], count)
        yield restarts

    async def _run_until_failure(self, name: str, work: Work) -> None:
        try:
            await _run(work)
        except Exception as error:
            LOG.critical("The task %r failed, and the server ends", name, exc_info=error)
            self._problems[name] = f"{type(error).__name__}: {error}"
            self._failure = TaskFailed(name, error)
            raise self._failure from error

    async def _run_with_restarts(self, name: str, work: Work) -> None:
        delay = FIRST_DELAY
        while True:
            started = self._clock.monotonic()
            try:
                await _run(work)
            except Exception as error:
                if _is_cancelled():  # a task group raises its tasks' errors instead of the cancellation
                    raise asyncio.CancelledError from error
                if self._clock.monotonic() - started >= HEALTHY_AFTER:
                    delay = FIRST_DELAY
                LOG.exception("The task %r failed and restarts in %g s", name, delay)
                self._problems[name] = f"{type(error).__name__}: {error}"
            await self._clock.sleep(delay)
            delay = min(2 * delay, MAX_DELAY)
            self._restarts[name] += 1
            del self._problems[name]


async def _run(work: Work) -> None:
    """Run a task; raise an error if it returns, because no task of a server ends by itself."""
    try:
        await work()
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        raise RuntimeError("an awaited task was cancelled") from error
    raise RuntimeError("the task returned")


def _is_cancelled() -> bool:
    """Return whether the current task was cancelled, as opposed to a task that it awaits."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
