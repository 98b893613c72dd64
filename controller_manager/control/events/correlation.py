"""Decide which Event is written when the same thing happens again.

Events of core/v1 raise a count and are aggregated when they are too many, as client-go's EventCorrelator does. Events
of events.k8s.io/v1 become a series, as client-go's tools/events does. Pure, and of one component.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_micro_time, format_time
from mockube.apimachinery.tree import ReadOnlyTree

NO_NAMESPACE: Final = "default"
"""Where events about objects live that have no namespace."""


class Occurrence(Struct, frozen=True, kw_only=True):
    at: datetime
    nanoseconds: int
    """The same time, and no other occurrence's: events are named after it."""
    about: ReadOnlyTree
    """A reference to the object."""
    type: str
    reason: str
    message: str
    action: str = ""
    related: ReadOnlyTree | None = None
    host: str = ""
    """Where the component runs, if it runs on several."""

    @property
    def namespace(self) -> str:
        return self.about.get("namespace") or NO_NAMESPACE

    @property
    def subject(self) -> Hashable:
        """The object, whichever of its versions."""
        return tuple(
            self.about.get(field, "") for field in ("apiVersion", "kind", "namespace", "name", "uid")
        )

    def new_name(self) -> str:
        """The object's, and the time as a hexadecimal number."""
        return f"{self.about['name']}.{self.nanoseconds:x}"


class EventWrite(Struct, frozen=True, kw_only=True):
    body: dict[str, Any]
    """The whole Event, as it is made where there is none."""
    change: ReadOnlyTree | None = None
    """What to change in the one that is there already."""


class Shape(Protocol):
    """One of the two kinds of Event, as one component records it."""

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        """What is to be written; None if the rate limit is exceeded."""

    def due_writes(self, now: datetime) -> list[EventWrite]:
        """Return what is due to be written by now, and remove series that have ended."""


def reference(obj: ReadOnlyTree, part: str = "") -> dict[str, str]:
    """The reference of an Event to its object, or to a part of it, as `spec.containers{web}`."""
    fields = {
        "kind": meta.kind(obj),
        "namespace": meta.namespace(obj),
        "name": meta.name(obj),
        "uid": meta.uid(obj),
        "apiVersion": meta.api_version(obj),
        "resourceVersion": meta.resource_version(obj),
        "fieldPath": part,
    }
    return {field: value for field, value in fields.items() if value}


SIMILAR: Final = 10
"""Different messages of one reason about one object, from which on they are combined into one event."""
SIMILAR_WITHIN: Final = timedelta(minutes=10)
"""How long after the last of them a new one is no longer similar."""
COMBINED: Final = "(combined from similar events): "
SPAM_BURST: Final = 25
SPAM_REFILL: Final = timedelta(minutes=5)
"""Seconds per event about one object, whatever the message."""
CACHE_SIZE: Final = 4096
"""Objects, reasons and events; the least recently used is dropped first."""

V = TypeVar("V")


class _Recent(Generic[V]):
    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def of(self, key: Hashable) -> V:
        if key not in self._values:
            self._values[key] = self._make()
            if len(self._values) > CACHE_SIZE:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]


class _Similar(Struct):
    messages: set[str] = field(default_factory=set)
    last: datetime | None = None


class _RecordedEvent(Struct):
    """An event that was written."""

    name: str = ""
    first: datetime | None = None
    count: int = 0


class _Allowance(Struct):
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


class CountedEvents:
    """A `Shape`."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._similar = _Recent(_Similar)
        self._recorded = _Recent(_RecordedEvent)
        self._allowances = _Recent(_Allowance)

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        key, message = self._combine(occurrence)
        recorded = self._recorded.of(key)
        recorded.count += 1
        if recorded.first is None:
            recorded.name, recorded.first = occurrence.new_name(), occurrence.at
        if not self._allowances.of(occurrence.subject).take(occurrence.at):
            return None
        body = self._body(occurrence, recorded, message)
        if recorded.count == 1:
            return EventWrite(body=body)
        return EventWrite(
            body=body, change={field: body[field] for field in ("count", "lastTimestamp", "message")}
        )

    def due_writes(self, _: datetime) -> list[EventWrite]:
        return []

    def _combine(self, occurrence: Occurrence) -> tuple[Hashable, str]:
        """The event that this one repeats, and its message."""
        group = (occurrence.subject, occurrence.type, occurrence.reason)
        similar = self._similar.of(group)
        if similar.last is not None and occurrence.at - similar.last > SIMILAR_WITHIN:
            similar.messages.clear()
        similar.last = occurrence.at
        similar.messages.add(occurrence.message)
        if len(similar.messages) < SIMILAR:
            return (*group, occurrence.about.get("fieldPath", ""), occurrence.message), occurrence.message
        similar.messages.pop()
        return group, COMBINED + occurrence.message

    def _body(self, occurrence: Occurrence, recorded: _RecordedEvent, message: str) -> dict[str, object]:
        assert recorded.first is not None
        is_combined = message != occurrence.message
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": recorded.name, "namespace": occurrence.namespace},
            "involvedObject": occurrence.about,
            "reason": occurrence.reason,
            "message": message,
            "source": {
                "component": self._component,
                **({"host": occurrence.host} if occurrence.host else {}),
            },
            "firstTimestamp": format_time(recorded.first),
            "lastTimestamp": format_time(occurrence.at),
            "count": recorded.count,
            "type": occurrence.type,
            # client-go writes neither into an event that stands for similar ones.
            "reportingComponent": "" if is_combined else self._component,
            "reportingInstance": "" if is_combined else occurrence.host,
        }


FINISHED_AFTER: Final = timedelta(minutes=6)
"""How long after the last time it is another event."""
REFRESH_INTERVAL: Final = timedelta(minutes=30)
"""The interval at which a continuing series is written."""
MAX_NOTE_LENGTH: Final = 1024
"""Events; beyond that the oldest is dropped, and is a new event if it occurs again."""


class _Ongoing(Struct):
    body: dict[str, Any]
    last: datetime
    count: int = 1
    written: datetime | None = None
    """When its series was written last; None while it is no series."""


class Series:
    """A `Shape`."""

    def __init__(self, controller: str, instance: str) -> None:
        self._controller = controller
        self._instance = instance
        self._recorded: dict[Hashable, _Ongoing] = {}

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        """The note is no part of what makes events the same."""
        key = (occurrence.subject, occurrence.type, occurrence.reason, occurrence.action, _uid(occurrence))
        recorded = self._recorded.get(key)
        if recorded is None:
            body = self._body(occurrence)
            self._record(key, _Ongoing(body=body, last=occurrence.at))
            return EventWrite(body=body)
        recorded.count += 1
        recorded.last = occurrence.at
        return _series(recorded, occurrence.at) if recorded.written is None else None

    def due_writes(self, now: datetime) -> list[EventWrite]:
        writes = []
        for key, recorded in [*self._recorded.items()]:
            finished = now - recorded.last > FINISHED_AFTER
            if finished:
                del self._recorded[key]
            if recorded.written is not None and (finished or now - recorded.written >= REFRESH_INTERVAL):
                writes.append(_series(recorded, now))
        return writes

    def _record(self, key: Hashable, recorded: _Ongoing) -> None:
        if len(self._recorded) >= CACHE_SIZE:
            del self._recorded[next(iter(self._recorded))]
        self._recorded[key] = recorded

    def _body(self, occurrence: Occurrence) -> dict[str, Any]:
        related = {"related": occurrence.related} if occurrence.related else {}
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": occurrence.new_name(), "namespace": occurrence.namespace},
            "eventTime": format_micro_time(occurrence.at),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": occurrence.action,
            "reason": occurrence.reason,
            "regarding": occurrence.about,
            **related,
            "note": occurrence.message[:MAX_NOTE_LENGTH],
            "type": occurrence.type,
        }


def _series(recorded: _Ongoing, now: datetime) -> EventWrite:
    recorded.written = now
    series = {"count": recorded.count, "lastObservedTime": format_micro_time(recorded.last)}
    return EventWrite(body={**recorded.body, "series": series}, change={"series": series})


def _uid(occurrence: Occurrence) -> str:
    return occurrence.related.get("uid", "") if occurrence.related else ""
