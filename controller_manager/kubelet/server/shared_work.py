"""Concurrent requests that need the same of the API server share one request."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class _Turn(Generic[T]):
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.callers = 0
        self.started = 0
        """How many pieces of work have begun, and which of them the result is of."""
        self.finished = 0
        self.result: T | None = None


class SharedWork(Generic[T]):
    """A caller gets the result of work that began after its call, so it is as fresh as work of its own."""

    def __init__(self) -> None:
        self._turns: dict[Hashable, _Turn[T]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work of a key, or wait for the work of another caller. A failure is raised for the caller that did
        the work only.
        """
        turn = self._turns.setdefault(key, _Turn())
        before = turn.started
        turn.callers += 1
        try:
            async with turn.lock:
                if turn.finished <= before:
                    number = turn.started = turn.started + 1
                    turn.result = await work()
                    turn.finished = number
                return cast("T", turn.result)
        finally:
            turn.callers -= 1
            if not turn.callers:
                del self._turns[key]
