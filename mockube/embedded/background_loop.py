"""An asynchronous context manager that stays open in an event loop in a background thread.

The background thread and the caller's thread do not block each other. The loop is closed when the context ends.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any, Generic, TypeVar

from mockube.component_base.loop import new_event_loop
from mockube.failure import Failure

from .garbage_collection import GARBAGE_COLLECTOR

T = TypeVar("T")
R = TypeVar("R")


class BackgroundContext(Generic[T]):
    """A context manager that is entered and exited once in a background thread; any thread may wait for `opened` and `ended`."""

    def __init__(self, block: Callable[[], AbstractAsyncContextManager[T]], *, name: str) -> None:
        self._block = block
        self.opened: Future[T] = Future()
        self.ended: Future[None] = Future()
        """Its result raises the error that ended the context, unless `stop` did."""
        self._loop: asyncio.AbstractEventLoop
        self._main: asyncio.Task[None]
        self._loop_ready = threading.Event()
        self._is_stopping = False
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
        self.stop()
        self._thread.join()
        if self.opened.exception() is None:
            self.ended.result()

    def submit(self, coroutine: Coroutine[Any, Any, R]) -> "Future[R]":
        """Run a coroutine in the loop; raise RuntimeError if the context has ended, or in the thread of the loop."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise Failure("a condition must not call methods of the cluster: they would wait for each other")
        if self.ended.done():
            coroutine.close()
            self.ended.result()
            raise RuntimeError("the cluster was stopped")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call(self, function: Callable[[], R]) -> R:
        """Call a function in the loop, and return its result. The function must not block the loop for long."""

        async def run_function() -> R:
            return function()

        return self.submit(run_function()).result()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._run_context())
        except BaseException as error:  # noqa: BLE001 - it is raised in the waiting threads
            self._fail(error)
        else:
            self.ended.set_result(None)
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

    def _fail(self, error: BaseException) -> None:
        self._loop_ready.set()
        if not self.opened.done():
            self.opened.set_exception(error)
        self.ended.set_exception(error)
