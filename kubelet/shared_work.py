"""Concurrent calls that need the same result from the API server share one request."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class _KeyWork(Generic[T]):
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.callers = 0
        self.started = 0
        """The number of the work that started last; `finished` is the number of the work that gave the result."""
        self.finished = 0
        self.result: T | None = None


class SharedWork(Generic[T]):
    """Shares work among concurrent callers: each gets a result of work that started after its call."""

    def __init__(self) -> None:
        self._work_by_key: dict[Hashable, _KeyWork[T]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work of a key, or wait for the work of another caller.

        A failure is raised only for the caller that did the work.
        """
        key_work = self._work_by_key.setdefault(key, _KeyWork())
        started_before = key_work.started
        key_work.callers += 1
        try:
            async with key_work.lock:
                if key_work.finished <= started_before:
                    number = key_work.started = key_work.started + 1
                    key_work.result = await work()
                    key_work.finished = number
                return cast("T", key_work.result)
        finally:
            key_work.callers -= 1
            if not key_work.callers:
                del self._work_by_key[key]
