"""Computations that cannot be written as generators, such as the parser: a long one goes on in a thread, which works only while its command has its turn."""

from collections.abc import Callable, Generator
from threading import Semaphore, Thread
from typing import Final, Generic, TypeVar

from .process import CommandStart, Effect

_AT_ONCE: Final = 4_000
"""The steps after which a computation starts anew in a thread: 4 ms."""
_PER_TURN, _COMMANDS_PER_TURN = 1_000, 16
"""The steps of a turn, and the commands that take as long."""

T = TypeVar("T")
Computation = Callable[[Callable[[], None]], T]
"""A computation, which calls its argument in each of its steps: a microsecond. It has no effect before it returns."""


class _TakesLong(Exception):
    """A computation has not ended within the first turn."""


class _Abandoned(BaseException):
    """Nobody wants the result of a computation any more."""


def in_turns(compute: Computation[T]) -> Generator[Effect, bytes | None, T]:
    """Return the result of a computation, or raise its error; yield a command for each part that takes as long as one."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1
        if steps > _AT_ONCE:
            raise _TakesLong

    try:
        return compute(count)
    except _TakesLong:
        turns = _Turns(compute)
    return (yield from turns.run())


class _Turns(Generic[T]):
    def __init__(self, compute: Computation[T]) -> None:
        self._compute = compute
        self._steps = 0
        self._may_work, self._has_paused = Semaphore(0), Semaphore(0)
        self._is_abandoned = False
        self._results: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> Generator[Effect, bytes | None, T]:
        thread = Thread(target=self._work, name="mockube-parser", daemon=True)
        thread.start()
        try:
            while True:
                self._may_work.release()
                self._has_paused.acquire()
                if self._error is not None:
                    raise self._error
                if self._results:
                    return self._results[0]
                for _ in range(_COMMANDS_PER_TURN):
                    yield CommandStart()
        finally:
            self._is_abandoned = True
            self._may_work.release()
            thread.join()

    def _work(self) -> None:
        self._may_work.acquire()
        try:
            self._results.append(self._compute(self._step))
        except _Abandoned:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            self._error = error
        self._has_paused.release()

    def _step(self) -> None:
        self._steps += 1
        if self._steps % _PER_TURN:
            return
        self._has_paused.release()
        self._may_work.acquire()
        if self._is_abandoned:
            raise _Abandoned
