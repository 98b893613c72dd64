"""What makes two runs of a cluster with a seed the same: its event loop, its threads, and when its time passes.

The clock stands still. While a call of the user runs, it advances to the next timer whenever nothing else is left to do. In a fork, the
process with the handle says when its call has nothing left to do, either.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from msgspec import Struct

from mockube.component_base.clock import ClusterClock, advance_in_steps, never
from mockube.component_base.forkable_loop import ForkableSelectorLoop
from mockube.component_base.loop import yield_to_loop
from mockube.objects import caller

T = TypeVar("T")

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The date at which the clock of a cluster with a seed begins."""
CERTIFICATE_YEARS: Final = 10
"""Certificates are valid from the beginning of the clock until so long after it: for clients with the machine's time, too."""
PORT: Final = 6443
"""The port of the server in objects; the listener's is a free one."""
MIN_STEP: Final = 0.001
"""The least seconds of a step, so that rounded times always reach a timer."""
_EMPTY_TURNS: Final = 3
"""Iterations after which the timers of the event loop that were due have run, too."""
_BUSY_SECONDS: Final = 0.001


class InlineExecutor(ThreadPoolExecutor):
    """Runs what is meant for a thread at once: the order of results does not depend on the machine."""

    def submit(self, function: Callable[..., T], /, *arguments: Any, **keywords: Any) -> "Future[T]":
        future: Future[T] = Future()
        try:
            future.set_result(function(*arguments, **keywords))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            future.set_exception(error)
        return future


class SeededLoop(ForkableSelectorLoop):
    """An event loop that knows whether callbacks are ready, and runs the work of threads inline."""

    def __init__(self) -> None:
        super().__init__()
        self.arrivals = 0
        """How often a descriptor was ready: whether something has arrived from outside of the process."""
        self.set_default_executor(InlineExecutor(max_workers=1))

    def continue_after_fork(self) -> None:
        super().continue_after_fork()
        self.set_default_executor(InlineExecutor(max_workers=1))

    def _process_events(self, event_list: Any) -> None:  # asyncio has no public name for it
        self.arrivals += len(event_list)
        super()._process_events(event_list)  # type: ignore[misc]

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)  # type: ignore[attr-defined]


class ReadyCallbacks:
    """The idleness of a `SeededLoop`: no callback is ready, and no request waits for something outside of the cluster."""

    def __init__(self, loop: SeededLoop, is_busy: Callable[[], bool], max_busy_seconds: float = 1.0) -> None:
        self._loop = loop
        self._is_busy = is_busy
        self._max_busy_seconds = max_busy_seconds
        self._turn = asyncio.Lock()
        """Held while callbacks are looked for: those of two that look for them would never be over."""

    async def wait(self, clock: ClusterClock) -> None:
        await self.wait_empty()
        # A request may wait for a timer, or for another program, which no callback shows.
        until = clock.real.monotonic() + self._max_busy_seconds
        while self._is_busy() and clock.real.monotonic() < until:
            await clock.real.sleep(_BUSY_SECONDS)
            await self.wait_empty()

    async def wait_empty(self) -> None:
        """Wait until no callback is ready."""
        async with self._turn:
            turns = 0
            while turns < _EMPTY_TURNS:
                await yield_to_loop()
                turns = 0 if self._loop.has_ready else turns + 1


class _Work(Struct, kw_only=True):
    """What a caller waits for: a coroutine, or an advance of the clock."""

    done: "asyncio.Future[Any]"
    context: Context
    coroutine: Coroutine[Any, Any, Any] | None = None
    seconds: float = 0.0
    is_over: Callable[[], bool] = never


class SteppedWork:
    """Runs the calls of users, each from and to a moment with nothing to do; the time passes only as far as they need."""

    def __init__(self, clock: ClusterClock, is_busy: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SeededLoop)
        self._loop = loop
        self._clock = clock
        self._passing: asyncio.Task[None]
        self._is_quiet: Callable[[], bool] = lambda: False
        self._caller_calls = caller.CallCount()
        self._idleness = ReadyCallbacks(loop, lambda: is_busy() or self._caller_calls.count > 0)
        self._queue: list[_Work] = []
        self._running: list[tuple[_Work, asyncio.Task[Any]]] = []
        self._driver: asyncio.Task[None] | None = None
        self.is_fork = False
        self.commands = 0
        """The arrivals that are commands of the handle of a fork."""
        self._turns = 0
        """The requests that have had their turn."""

    def let_time_pass(self) -> None:
        """Let time pass whenever nothing else is left to do, until `hold`."""
        self._passing = asyncio.create_task(self._pass_time())

    async def hold(self) -> None:
        """Let time stand still again, at a moment with nothing to do."""
        self._passing.cancel()
        await asyncio.wait([self._passing])
        await self._idleness.wait(self._clock)

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and return its result."""
        result: T = await self._add(coroutine=coroutine)
        return result

    async def advance(
        self, seconds: float, is_quiet: Callable[[], bool], is_over: Callable[[], bool] = never
    ) -> None:
        self._is_quiet = is_quiet
        await self._add(seconds=seconds, is_over=is_over)

    async def _add(
        self,
        *,
        coroutine: Coroutine[Any, Any, Any] | None = None,
        seconds: float = 0.0,
        is_over: Callable[[], bool] = never,
    ) -> Any:
        caller.CALL_COUNT.set(self._caller_calls)
        done = asyncio.get_running_loop().create_future()
        context = copy_context()
        self._queue.append(
            _Work(done=done, context=context, coroutine=coroutine, seconds=seconds, is_over=is_over)
        )
        if self._driver is None or self._driver.done():
            self._driver = asyncio.create_task(self._drive())
        return await done

    async def _drive(self) -> None:
        """Run what is queued until all of it is done."""
        self._running = []
        try:
            await self._drive_until_done(self._running)
        except Exception as error:  # noqa: BLE001 - it is raised to the callers, who wait for nothing else
            for work in (*self._take(), *(work for work, _ in self._running)):
                if not work.done.done():
                    work.done.set_exception(error)

    async def _drive_until_done(self, running: "list[tuple[_Work, asyncio.Task[Any]]]") -> None:
        while self._queue or running:
            await self._idleness.wait(self._clock)
            for work in self._take():
                if work.coroutine is None:
                    await self._advance(work)
                elif work.done.cancelled():
                    work.coroutine.close()
                else:
                    running.append((work, asyncio.create_task(work.coroutine, context=work.context)))
            await self._idleness.wait(self._clock)
            running[:] = [each for each in running if not _finish(*each)]
            if running and not self._queue:
                await self._step()

    async def _advance(self, work: _Work) -> None:
        try:
            await advance_in_steps(
                self._clock,
                work.seconds,
                self._idleness,
                self._is_quiet,
                lambda: work.done.done() or work.is_over(),  # its caller may have left
            )
        except Exception as error:  # noqa: BLE001 - it is raised to the caller
            if not work.done.done():
                work.done.set_exception(error)
        else:
            if not work.done.done():  # the caller still waits
                work.done.set_result(None)

    def _take(self) -> list[_Work]:
        queue, self._queue = self._queue, []
        return queue

    # --- in a fork, whose calls are requests of another process

    def continue_after_fork(self) -> None:
        """Leave the calls of the parent to it: nobody waits for them in this process."""
        self.is_fork = True
        for task in (self._driver, *(task for _, task in self._running)):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        self._driver, self._queue, self._running = None, [], []
        self._caller_calls.count = 0

    async def wait_for_turn(self) -> None:
        """Wait until nothing is left to do, so that it does not depend on the speed of a client when its request is handled."""
        await self._idleness.wait_empty()
        self._turns += 1

    async def pass_time(self, seen: int) -> int:
        """Step to the next timer if a client that waits has sent nothing since the arrivals that were `seen`; return how many there are."""
        await self._idleness.wait(self._clock)
        if self._arrivals == seen:
            await self._step()
            await self._idleness.wait(self._clock)
        return self._arrivals

    @property
    def _arrivals(self) -> int:
        """A number that changes with everything that a client sends, and when a request of it begins."""
        return self._loop.arrivals - self.commands + self._turns

    async def _pass_time(self) -> None:
        while True:
            await self._idleness.wait(self._clock)
            await self._step()

    async def _step(self) -> None:
        due = self._clock.next_due()
        if due is None:
            await self._clock.real.sleep(_BUSY_SECONDS)
        else:
            self._clock.advance(max(due, MIN_STEP))


def _finish(work: _Work, task: "asyncio.Task[Any]") -> bool:
    """Pass the result of a task to the caller, or the end of the caller to the task; return whether the work is done."""
    if work.done.cancelled():
        task.cancel()
        return True
    if not task.done():
        return False
    if task.cancelled():
        work.done.cancel()
    elif error := task.exception():
        work.done.set_exception(error)
    else:
        work.done.set_result(task.result())
    return True
