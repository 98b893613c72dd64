"""The event loop of asyncio that can go on in a forked process, and what `forkable_uvloop` shares with it.

The loop, its tasks and its timers exist in both processes. What it waits by belongs to the kernel and is shared until
`continue_after_fork` makes it anew. Threads exist in the parent only, so that a fork has to wait for their work.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Protocol, cast


class ForkableLoop(Protocol):
    thread_work: set[asyncio.Future[Any]]

    def problem(self) -> str:
        """Return why the loop cannot be forked; "" if it can."""

    def continue_after_fork(self) -> None:
        """Continue in the forked process, whose descriptors have been replaced."""


class ThreadWork:
    """Notes the work of a loop's threads until the loop has its result."""

    def __init__(self) -> None:
        super().__init__()
        self.thread_work: set[asyncio.Future[Any]] = set()

    def problem(self) -> str:
        """Return why the loop cannot be forked; "" if it can."""
        return ""

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        parent: Any = super()
        work: asyncio.Future[Any] = parent.run_in_executor(executor, func, *args)
        self.thread_work.add(work)
        work.add_done_callback(self.thread_work.discard)
        return work


class ForkableSelectorLoop(ThreadWork, asyncio.SelectorEventLoop):  # type: ignore[misc]  # it has the types of any loop
    def continue_after_fork(self) -> None:
        loop = cast("Any", self)  # asyncio has no public names for these
        old = loop._selector  # noqa: SLF001 - as above
        watched = [*old.get_map().values()]
        old.close()
        loop._selector = selectors.DefaultSelector()  # noqa: SLF001 - as above
        for each in watched:
            loop._selector.register(each.fileobj, each.events, each.data)  # noqa: SLF001 - as above
        loop._close_self_pipe()  # noqa: SLF001 - as above
        loop._make_self_pipe()  # noqa: SLF001 - as above
        run_again(self)


def run_again(loop: asyncio.AbstractEventLoop) -> None:
    """Let a loop run in the forked process, in which asyncio takes it for stopped, with threads of its own."""
    asyncio._set_running_loop(loop)  # noqa: SLF001 - it is public for event loops
    loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
    loop.call_soon(lambda: None)  # what was ready before the fork runs now: its signal is lost
