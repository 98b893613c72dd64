"""An asynchronous block, held open in an event loop in a thread of its own.

What runs in it cannot be blocked by the caller's thread, nor block it. Nothing of the loop outlives the block.
"""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

NEW_LOOP: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop as NEW_LOOP  # noqa: N812 - one of two
except ImportError:  # it is not made for every system
    NEW_LOOP = asyncio.new_event_loop

T = TypeVar("T")
R = TypeVar("R")


class Collection:
    """The garbage collector of the interpreter, which is paused while blocks open.

    A start creates 30,000 objects that stay. That would cause a full collection, which takes as long as the start.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._was_enabled = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        with self._lock:
            if not self._pauses:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if not self._pauses and self._was_enabled:
                    gc.enable()


_COLLECTION: Final = Collection()


class HostedRun(Generic[T]):
    """Starts once and ends once; any thread may wait until the block is `opened` and until it has `ended`."""

    def __init__(self, block: Callable[[], AbstractAsyncContextManager[T]], *, name: str) -> None:
        self._block = block
        self.opened: Future[T] = Future()
        self.ended: Future[None] = Future()
        """Raises the error that has ended the block, unless it was stopped."""
        self._loop: asyncio.AbstractEventLoop
        self._main: asyncio.Task[None]
        self._loop_ready = threading.Event()
        self._is_to_end = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """RuntimeError at the second time."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the block, whether it is open yet or not."""
        self._loop_ready.wait()
        if not self._is_to_end and not self.ended.done():
            self._is_to_end = True
            with suppress(RuntimeError):  # it has just ended by itself
                self._loop.call_soon_threadsafe(self._main.cancel)

    def close(self) -> None:
        """Stop it and wait until all of it has ended. Raise the error that ended it before."""
        if self._thread.ident is None:
            return
        self.stop()
        self._thread.join()
        if self.opened.exception() is None:
            self.ended.result()

    def submit(self, work: Coroutine[Any, Any, R]) -> "Future[R]":
        """Have it done in the loop."""
        if self.ended.done():
            work.close()
            self.ended.result()
            raise RuntimeError("the cluster was stopped")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], R]) -> R:
        """Have it called in the loop, and wait for what it answers: it must not take long."""

        async def run_function() -> R:
            return function()

        return self.submit(run_function()).result()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=NEW_LOOP) as runner:
                runner.run(self._hold())
        except BaseException as error:  # noqa: BLE001 - it is raised in the waiting threads
            self._fail(error)
        else:
            self.ended.set_result(None)

    async def _hold(self) -> None:
        self._loop = asyncio.get_running_loop()
        main = asyncio.current_task()
        assert main is not None
        self._main = main
        self._loop_ready.set()
        async with AsyncExitStack() as stack:
            with _COLLECTION.pause():
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
