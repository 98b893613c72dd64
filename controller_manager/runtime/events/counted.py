"""Events of core/v1, as the controllers record them: the same once more raises a count, and too many are told as one.

Numbers and words are those of client-go's EventCorrelator. Pure, and of one component.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from apimachinery.timestamps import format_time
from controller_manager.runtime.events.occurrence import EventWrite, Occurrence

SIMILAR: Final = 10
"""Different messages of one reason about one object, from which on they are told as one event."""
SIMILAR_WITHIN: Final = timedelta(minutes=10)
"""How long after the last of them a new one is no longer similar."""
COMBINED: Final = "(combined from similar events): "
SPAM_BURST: Final = 25
SPAM_REFILL: Final = timedelta(minutes=5)
"""Per event about one object, whatever is said."""
REMEMBERED: Final = 4096
"""Objects, reasons and events; the longest unused is forgotten first."""

V = TypeVar("V")


class _Recent(Generic[V]):
    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def of(self, key: Hashable) -> V:
        if key not in self._values:
            self._values[key] = self._make()
            if len(self._values) > REMEMBERED:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    last: datetime | None = None


@dataclass(slots=True)
class _Told:
    """An event that was written."""

    name: str = ""
    first: datetime | None = None
    count: int = 0


@dataclass(slots=True)
class _Allowance:
    tokens: float = SPAM_BURST
    at: datetime | None = None

    def take(self, now: datetime) -> bool:
        if self.at is not None:
            self.tokens = min(self.tokens + (now - self.at) / SPAM_REFILL, SPAM_BURST)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Counted:
    """A `Shape`."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._similar = _Recent(_Similar)
        self._told = _Recent(_Told)
        self._allowances = _Recent(_Allowance)

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        key, message = self._combine(occurrence)
        told = self._told.of(key)
        told.count += 1
        if told.first is None:
            told.name, told.first = occurrence.new_name(), occurrence.at
        if not self._allowances.of(occurrence.subject).take(occurrence.at):
            return None
        body = self._body(occurrence, told, message)
        if told.count == 1:
            return EventWrite(body=body)
        return EventWrite(
            body=body, change={field: body[field] for field in ("count", "lastTimestamp", "message")}
        )

    def overdue(self, _: datetime) -> list[EventWrite]:
        return []

    def _combine(self, occurrence: Occurrence) -> tuple[Hashable, str]:
        """Which event this is one more of, and what it says."""
        group = (occurrence.subject, occurrence.type, occurrence.reason)
        similar = self._similar.of(group)
        if similar.last is not None and occurrence.at - similar.last > SIMILAR_WITHIN:
            similar.messages.clear()
        similar.last = occurrence.at
        similar.messages.add(occurrence.message)
        if len(similar.messages) < SIMILAR:
            return (*group, occurrence.message), occurrence.message
        similar.messages.pop()
        return group, COMBINED + occurrence.message

    def _body(self, occurrence: Occurrence, told: _Told, message: str) -> dict[str, object]:
        assert told.first is not None
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": told.name, "namespace": occurrence.namespace},
            "involvedObject": occurrence.about,
            "reason": occurrence.reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": format_time(told.first),
            "lastTimestamp": format_time(occurrence.at),
            "count": told.count,
            "type": occurrence.type,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
