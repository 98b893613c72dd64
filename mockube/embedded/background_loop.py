"""An asynchronous context manager that stays open in an event loop in a background thread.

The background thread and the caller's thread do not block each other. The loop is closed when the context ends.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any, Generic, TypeVar, cast

from mockube.component_base.forkable_loop import ForkableLoop
from mockube.component_base.loop import new_forkable_loop
from mockube.failure import Failure

from .garbage_collection import GARBAGE_COLLECTOR

T = TypeVar("T")
R = TypeVar("R")


class BackgroundContext(Generic[T]):
    """A context manager that is entered and exited once in a background thread; any thread may wait for `opened` and `ended`."""

    def __init__(
        self,
        block: Callable[[], AbstractAsyncContextManager[T]],
        *,
        name: str,
        new_loop: Callable[[], asyncio.AbstractEventLoop] = new_forkable_loop,
    ) -> None:
        self._block = block
        self._new_loop = new_loop
        self.opened: Future[T] = Future()
        self.ended: Future[None] = Future()
        """Its result raises the error that ended the context, unless `stop` did."""
        self._loop: asyncio.AbstractEventLoop
        self._main: asyncio.Task[None]
        self._loop_ready = threading.Event()
        self._is_stopping = False
        self._pid = os.getpid()
        self._submitted: dict[Future[Any], Coroutine[Any, Any, Any]] | None = {}
        """The coroutines that run, by their futures; None when the context ends."""
        self._submit_lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread and enter the context; raise RuntimeError if it was started before."""
        self._thread.start()

    def stop(self) -> None:
        """Request the end of the context, whether or not it is open yet."""
        self._loop_ready.wait()
        if not self._is_stopping and not self.ended.done():
            self._is_stopping = True
            with suppress(RuntimeError):  # the loop has just closed
                self._loop.call_soon_threadsafe(self._main.cancel)

    def close(self) -> None:
        """Stop the context and wait for the end of its thread. Raise the error that ended it, if any."""
        if self._thread.ident is None:
            return
        if self._pid != os.getpid():  # a forked process has a copy, without the thread
            return
        self.stop()
        self._thread.join()
        if self.opened.exception() is None:
            self.ended.result()

    def submit(self, coroutine: Coroutine[Any, Any, R]) -> "Future[R]":
        """Run a coroutine in the loop; raise Failure where it could never run. The future is cancelled when the context ends."""
        try:
            self._check_caller()
            with self._submit_lock:
                return self._start(coroutine)
        except BaseException:
            coroutine.close()
            raise

    def call(self, function: Callable[[], R]) -> R:
        """Call a function in the loop, and return its result. The function must not block the loop for long."""

        async def run_function() -> R:
            return function()

        try:
            return self.submit(run_function()).result()
        except CancelledError:
            raise Failure("the cluster was stopped") from None

    def continue_after_fork(self) -> None:
        """Let the loop go on in a forked process, whose descriptors have been replaced.

        Submitted coroutines but the current one are cancelled: nobody waits for them in this process.
        """
        cast("ForkableLoop", self._loop).continue_after_fork()
        submitted = self._submitted or {}
        for future in submitted:
            # A thread that does not exist here may have held the lock.
            future._condition = threading.Condition()  # noqa: SLF001 - there is no public name for it
        coroutines = {id(coroutine) for coroutine in submitted.values()}
        for task in asyncio.all_tasks() if len(submitted) > 1 else ():
            if id(task.get_coro()) in coroutines and task is not asyncio.current_task():
                task.cancel()

    def _check_caller(self) -> None:
        if self._pid != os.getpid():
            raise Failure(
                "the cluster runs in the process that started it, not in a forked one:"
                " use mockube.connect(kubeconfig=...) here, or start processes with the method spawn"
            )
        if threading.current_thread() is self._thread:
            raise Failure("a plugin must not call methods of the cluster: they would wait for each other")

    def _start(self, coroutine: Coroutine[Any, Any, R]) -> "Future[R]":
        submitted = self._submitted
        if submitted is None:
            coroutine.close()
            future: Future[R] = Future()
            future.cancel()
            return future
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        submitted[future] = coroutine
        future.add_done_callback(lambda ended: submitted.pop(ended, None))
        return future

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._new_loop) as runner:
                runner.run(self._run_context())
        except BaseException as error:  # noqa: BLE001 - it is raised in the waiting threads
            self._fail(error)
        else:
            self.ended.set_result(None)
        self._cancel_submitted()
        GARBAGE_COLLECTOR.count_ended_cluster()

    async def _run_context(self) -> None:
        self._loop = asyncio.get_running_loop()
        main = asyncio.current_task()
        assert main is not None
        self._main = main
        self._loop_ready.set()
        async with AsyncExitStack() as stack:
            with GARBAGE_COLLECTOR.pause():
                resource = await stack.enter_async_context(self._block())
            self.opened.set_result(resource)
            try:
                await self._loop.create_future()
            except asyncio.CancelledError:
                main.uncancel()
            finally:
                self._cancel_submitted()  # while the server still runs

    def _cancel_submitted(self) -> None:
        """Cancel the coroutines that run, and those that are submitted later."""
        with self._submit_lock:
            submitted, self._submitted = self._submitted or {}, None
        for future in submitted.copy():
            future.cancel()

    def _fail(self, error: BaseException) -> None:
        self._loop_ready.set()
        if not self.opened.done():
            self.opened.set_exception(error)
        self.ended.set_exception(error)
