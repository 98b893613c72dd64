"""Callbacks that a store leaves to the event loop."""

import logging
from collections.abc import Callable
from typing import Protocol

Callback = Callable[[], None]
Guard = Callable[[Callback], Callback]


class StoreTimer(Protocol):
    def cancel(self) -> None: ...


class StoreClock(Protocol):
    """The interface of a clock that the store uses."""

    def monotonic(self) -> float: ...

    def call_later(self, delay: float, callback: Callback) -> StoreTimer: ...


_logger = logging.getLogger(__name__)


def report_failure(callback: Callback, fail: Callable[[BaseException], None]) -> Callback:
    """Return the callback for the event loop; what it raises is logged and given to `fail`, like an error of a task."""

    def run() -> None:
        try:
            callback()
        except Exception as error:
            _logger.exception("the store's callback %r failed", callback.__name__)
            fail(error)

    return run
