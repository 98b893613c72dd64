"""Callbacks of a clock in the order of their times; the clock passes in how late it is."""

import heapq
import itertools
from collections.abc import Callable
from typing import Final

CANCELLED: Final = 1000
"""The number of cancelled alarms that are kept before all of them are removed."""


class Alarm:
    """Ordered by due time, then by the order in which they were set."""

    __slots__ = ("_alarms", "callback", "due", "number")

    def __init__(self, alarms: "Alarms", due: float, number: int, callback: Callable[[], None]) -> None:
        self._alarms = alarms
        self.due = due
        self.number = number
        self.callback: Callable[[], None] | None = callback

    def __lt__(self, other: "Alarm") -> bool:
        return (self.due, self.number) < (other.due, other.number)

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._alarms.remove_cancelled()

    def ring(self) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


class Alarms:
    def __init__(self) -> None:
        self._heap: list[Alarm] = []
        self._numbers = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        """With those that were cancelled and are still kept."""
        return len(self._heap)

    def set(self, due: float, callback: Callable[[], None]) -> Alarm:
        alarm = Alarm(self, due, next(self._numbers), callback)
        heapq.heappush(self._heap, alarm)
        return alarm

    def next(self) -> Alarm | None:
        """That rings before all others; it stays."""
        while self._heap and self._heap[0].callback is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0] if self._heap else None

    def pop(self, until: float) -> Alarm | None:
        """The next one, if it is due by then: it is the caller's to ring."""
        alarm = self.next()
        if alarm is None or alarm.due > until:
            return None
        return heapq.heappop(self._heap)

    def remove_cancelled(self) -> None:
        """Of those that are kept one was cancelled."""
        self._cancelled += 1
        if self._cancelled > CANCELLED:
            self._heap = [alarm for alarm in self._heap if alarm.callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0
