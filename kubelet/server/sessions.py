"""The tasks that serve clients of a kubelet, and the commands that continue when their client has left."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from mockube.component_base.supervision import cancel_and_wait, start

from . import limits

_T = TypeVar("_T")


class Sessions:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._left: dict[asyncio.Task[Any], None] = {}
        """The commands whose clients have left, the oldest first."""

    def start(self, name: str, work: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """Start a task that runs until its end or the server's."""
        task = start(name, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def leave(self, command: "asyncio.Task[Any]") -> None:
        """Let a command continue without its client; beyond a limit end the one that was left first."""
        self._left[command] = None
        command.add_done_callback(lambda ended: self._left.pop(ended, None))
        if len(self._left) > limits.MAX_LEFT_COMMANDS:
            oldest = next(iter(self._left))
            del self._left[oldest]
            oldest.cancel()

    async def run_apart(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work in a task of its own: a handler is cancelled with its connection, whose input is still read."""
        await asyncio.shield(self.start("a session of a client", work))

    async def end(self) -> None:
        """Cancel all tasks, and wait for their end."""
        while self._tasks:
            await cancel_and_wait(list(self._tasks))
