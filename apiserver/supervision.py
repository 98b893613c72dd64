"""The background tasks of a server: none of them ends unnoticed.

A task that raises is logged with its traceback and counted. It then starts again from a clean state after a delay, or,
if nothing may go on without it, it ends the server: `/readyz` and `/livez` fail under its name, the block of `running`
is cancelled, and `TaskFailed` is raised out of it. Which task does what stands in `TASKS`.
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

from mockube.apimachinery.clock import Clock

LOG = logging.getLogger(__name__)

Work = Callable[[], Coroutine[None, None, None]]
"""Called at each start: what it returns begins from a clean state."""

FIRST_DELAY: Final = 0.1
"""Seconds before the first restart; each further delay is twice as long."""
MAX_DELAY: Final = 30.0
HEALTHY_AFTER: Final = 60.0
"""Seconds that a task must run for before its delays begin anew."""


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
    "store": OnFailure.END,
}


def is_restarted(name: str) -> bool:
    return TASKS[name] is OnFailure.RESTART


def check_name(name: str) -> str:
    """How `/readyz` names a task."""
    return f"task-{name}"


class TaskFailed(Exception):
    """A task without which the server cannot go on raised an error, which is the cause of this one."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"the task {name!r} failed, so the server ends: {type(error).__name__}: {error}")


class Supervisor(Collector):
    """Runs the tasks of `TASKS`, each as long as the block of `running` lasts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._group: asyncio.TaskGroup | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._problems: dict[str, str] = {}
        """Why a task does not run now, by its name."""
        self._restarts: Counter[str] = Counter({name: 0 for name in TASKS if is_restarted(name)})
        self._failure: TaskFailed | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Cancel all tasks at the end, and wait for them. Raises `TaskFailed`, or what the block raised."""
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
        assert self._group is not None
        run = self._run_again_and_again if is_restarted(name) else self._run_to_the_end
        self._tasks.append(self._group.create_task(run(name, work), name=name))

    def problem(self, name: str) -> str:
        """Why a task does not run, or "" if it does."""
        return self._problems.get(name, "")

    def collect(self) -> Iterable[Metric]:
        restarts = CounterMetricFamily(
            "mockube_task_restarts", "Background tasks that failed and were restarted.", labels=["task"]
        )
        for name, count in self._restarts.items():
            restarts.add_metric([name], count)
        yield restarts

    async def _run_to_the_end(self, name: str, work: Work) -> None:
        try:
            await _run(work)
        except Exception as error:
            LOG.critical("The task %r failed, and the server ends", name, exc_info=error)
            self._problems[name] = f"{type(error).__name__}: {error}"
            self._failure = TaskFailed(name, error)
            raise self._failure from error

    async def _run_again_and_again(self, name: str, work: Work) -> None:
        delay = FIRST_DELAY
        while True:
            started = self._clock.monotonic()
            try:
                await _run(work)
            except Exception as error:
                if _is_cancelled():  # a group of tasks raises the errors of its tasks instead
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
    """Raise in every case: no task of a server comes to an end by itself."""
    try:
        await work()
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        raise RuntimeError("an awaited task was cancelled") from error
    raise RuntimeError("the task returned")


def _is_cancelled() -> bool:
    """Return whether the running task was cancelled, and not what it awaits."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
