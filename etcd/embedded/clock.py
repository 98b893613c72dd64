"""The clock of the embedded store, which its caller passes: for deadlines of leases and for timers."""

from collections.abc import Callable
from typing import Protocol


class StoreTimer(Protocol):
    def cancel(self) -> None: ...


class StoreClock(Protocol):
    @property
    def real(self) -> "StoreClock":
        """The clock of the machine, for the disk."""

    @property
    def routine(self) -> "StoreClock":
        """The clock of callbacks that have no effect while nobody writes, and may be late then."""

    def monotonic(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> StoreTimer: ...
