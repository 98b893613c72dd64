"""Whose turn it is to work: one command in each turn of the event loop, so that many take no more of it than one does."""

import asyncio
from collections import deque
from time import thread_time
from typing import Final
from weakref import WeakKeyDictionary

from .shell.process import CommandStart, Effect, Run

SLICE: Final = 50
"""The commands of a turn: 3 ms."""
SECONDS: Final = 0.02
"""The time of the processor after which a turn ends with fewer commands: some take longer than most."""


class _Queue:
    """The commands of an event loop that wait for their turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call_soon = loop.call_soon
        self._waiting: deque[asyncio.Future[None]] = deque()

    def add(self, turn: "asyncio.Future[None]") -> None:
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            self._call_soon(self._wake_first)

    def _wake_first(self) -> None:
        while self._waiting and self._waiting[0].done():  # its command was cancelled
            del self._waiting[0]
        if not self._waiting:
            return
        self._waiting.popleft().set_result(None)
        if self._waiting:
            self._call_soon(self._wake_first)


_QUEUES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue]] = WeakKeyDictionary()


class Turn:
    """What a command has done since its turn began."""

    def __init__(self) -> None:
        self.commands, self._seconds = 0, 0.0

    def advance(self, execution: Run, reply: bytes | None) -> Effect:
        """Continue the command up to its next effect."""
        began = thread_time()
        effect = execution.send(reply) if reply else next(execution)
        self._seconds += thread_time() - began
        self.commands += isinstance(effect, CommandStart)
        return effect

    @property
    def is_over(self) -> bool:
        return self.commands >= SLICE or self._seconds >= SECONDS

    async def take_next(self) -> None:
        """Let others work before the command goes on."""
        await next_turn()
        self.commands, self._seconds = 0, 0.0


async def next_turn() -> None:
    """Wait until the present command may go on: after all other ready tasks, and after the commands that have waited longer."""
    loop = asyncio.get_running_loop()
    queue = _QUEUES.get(loop)
    if queue is None:
        queue = _QUEUES[loop] = _Queue(loop)
    turn = loop.create_future()
    queue.add(turn)
    await turn
