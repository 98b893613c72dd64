"""Time for the client of a real etcd: an injected clock, and a deadline on it."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def monotonic(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer: ...

    async def sleep(self, seconds: float) -> None: ...


class Deadline:
    """`with Deadline(clock, 5.0):` cancels what its body awaits after five seconds, and raises TimeoutError.

    A cancellation by another task is passed on, also if it arrives at the same moment.
    """

    __slots__ = ("_cancellations", "_clock", "_expired", "_seconds", "_task", "_timer")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancellations = task.cancelling()
        self._timer = self._clock.call_later(max(self._seconds, 0.0), self._expire)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._expired and self._task.uncancel() <= self._cancellations and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()
