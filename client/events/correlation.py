"""Correlate repeated occurrences to one Event, for one component. Pure.

Events of core/v1 count repetitions, and similar ones are aggregated, as by client-go's EventCorrelator. Events of
events.k8s.io/v1 become a series, as in client-go's tools/events.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_micro_time, format_time
from mockube.apimachinery.tree import ReadOnlyTree

DEFAULT_NAMESPACE: Final = "default"
"""The namespace of Events about cluster-scoped objects."""


class Occurrence(Struct, frozen=True, kw_only=True):
    """Something that happened to an object, and that an Event reports."""

    time: datetime
    nanoseconds: int
    """The same time as a number that is unique to this occurrence: names of Events contain it."""
    about: ReadOnlyTree
    """A reference to the object."""
    type: str
    reason: str
    message: str
    action: str = ""
    related: ReadOnlyTree | None = None
    host: str = ""
    """The host of the component, if it runs on several hosts."""

    @property
    def namespace(self) -> str:
        return self.about.get("namespace") or DEFAULT_NAMESPACE

    @property
    def subject(self) -> Hashable:
        """The identity of the object, without its version."""
        return tuple(
            self.about.get(field, "") for field in ("apiVersion", "kind", "namespace", "name", "uid")
        )

    def new_name(self) -> str:
        """Return a name for a new Event: the object's name, and the time as a hexadecimal number."""
        return f"{self.about['name']}.{self.nanoseconds:x}"


class EventWrite(Struct, frozen=True, kw_only=True):
    """A request that creates an Event, or patches an existing one."""

    body: dict[str, Any]
    """The whole Event, which is created if it does not exist."""
    patch: ReadOnlyTree | None = None
    """The patch of an existing Event; None for a new one."""


class EventCorrelator(Protocol):
    """Determines the writes of one component's Events, in one of the two APIs for Events."""

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        """Return the write for an occurrence; None if there is none, such as after the rate limit is exceeded."""

    def due_writes(self, now: datetime) -> list[EventWrite]:
        """Return the writes of series that are due, and remove the series that have ended."""

    @property
    def may_have_series(self) -> bool:
        """Whether a write may become due without another occurrence."""


def reference(obj: ReadOnlyTree, part: str = "") -> dict[str, str]:
    """Return the reference of an Event to its object, or to a part of it, such as `spec.containers{web}`."""
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


MAX_SIMILAR_EVENTS: Final = 10
"""The number of different messages with one reason about one object at which they are aggregated into one Event."""
MAX_SIMILAR_INTERVAL: Final = timedelta(minutes=10)
"""The time after the last similar message at which aggregation starts again."""
AGGREGATE_PREFIX: Final = "(combined from similar events): "
SPAM_BURST: Final = 25
SPAM_REFILL_INTERVAL: Final = timedelta(minutes=5)
"""The time in which an object gains the allowance for one Event, whatever its message."""
CACHE_SIZE: Final = 4096
"""The maximum number of entries of each cache; the oldest, or least recently used, is dropped first."""

V = TypeVar("V")


class _LRUCache(Generic[V]):
    """Values by key, created on first use; the least recently used is dropped first."""

    def __init__(self, create: Callable[[], V]) -> None:
        self._create = create
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def of(self, key: Hashable) -> V:
        if key not in self._values:
            self._values[key] = self._create()
            if len(self._values) > CACHE_SIZE:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]


class _SimilarEvents(Struct):
    """The different messages with one reason about one object."""

    messages: set[str] = field(default_factory=set)
    last: datetime | None = None


class _RecordedEvent(Struct):
    """An Event that was written, and how often it occurred."""

    name: str = ""
    first: datetime | None = None
    count: int = 0


class _SpamFilter(Struct):
    """The token bucket of the Events about one object, of one type."""

    tokens: float = SPAM_BURST
    refilled_at: datetime | None = None

    def take(self, now: datetime) -> bool:
        if self.refilled_at is not None:
            refill = (now - self.refilled_at) / SPAM_REFILL_INTERVAL
            self.tokens = min(self.tokens + refill, SPAM_BURST)
        self.refilled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class CountCorrelator:
    """The `EventCorrelator` of core/v1: counts repetitions, aggregates similar Events, and limits their rate."""

    def __init__(self, component: str, *, limits_each_type: bool = True) -> None:
        self._component = component
        self._limits_each_type = limits_each_type
        """Whether Events of each type have a rate limit of their own: many warnings then do not suppress other Events."""
        self._similar = _LRUCache(_SimilarEvents)
        self._recorded = _LRUCache(_RecordedEvent)
        self._spam_filters = _LRUCache(_SpamFilter)

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        key, message = self._aggregate(occurrence)
        recorded = self._recorded.of(key)
        recorded.count += 1
        if recorded.first is None:
            recorded.name, recorded.first = occurrence.new_name(), occurrence.time
        limited = (occurrence.subject, occurrence.type if self._limits_each_type else "")
        if not self._spam_filters.of(limited).take(occurrence.time):
            return None
        body = self._body(occurrence, recorded, message)
        if recorded.count == 1:
            return EventWrite(body=body)
        return EventWrite(
            body=body, patch={field: body[field] for field in ("count", "lastTimestamp", "message")}
        )

    def due_writes(self, _: datetime) -> list[EventWrite]:
        return []

    @property
    def may_have_series(self) -> bool:
        return False

    def _aggregate(self, occurrence: Occurrence) -> tuple[Hashable, str]:
        """Return the key of the Event that this occurrence repeats, and its message."""
        group = (occurrence.subject, occurrence.type, occurrence.reason)
        similar = self._similar.of(group)
        if similar.last is not None and occurrence.time - similar.last > MAX_SIMILAR_INTERVAL:
            similar.messages.clear()
        similar.last = occurrence.time
        similar.messages.add(occurrence.message)
        if len(similar.messages) < MAX_SIMILAR_EVENTS:
            return (*group, occurrence.about.get("fieldPath", ""), occurrence.message), occurrence.message
        similar.messages.pop()
        return group, AGGREGATE_PREFIX + occurrence.message

    def _body(self, occurrence: Occurrence, recorded: _RecordedEvent, message: str) -> dict[str, object]:
        assert recorded.first is not None
        is_aggregate = message != occurrence.message
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
            "lastTimestamp": format_time(occurrence.time),
            "count": recorded.count,
            "type": occurrence.type,
            # client-go sets neither in an aggregated Event.
            "reportingComponent": "" if is_aggregate else self._component,
            "reportingInstance": "" if is_aggregate else occurrence.host,
        }


FINISHED_AFTER: Final = timedelta(minutes=6)
"""The time after the last occurrence at which a series ends."""
REFRESH_INTERVAL: Final = timedelta(minutes=30)
"""The interval at which a continuing series is written."""
MAX_NOTE_LENGTH: Final = 1024
"""The maximum number of characters of a note; longer ones are cut."""


class _RecordedSeries(Struct):
    """An Event that was written, and its series if it occurred again."""

    body: dict[str, Any]
    last: datetime
    count: int = 1
    written_at: datetime | None = None
    """The time of the last write of its series; None before the first."""


class SeriesCorrelator:
    """The `EventCorrelator` of events.k8s.io/v1: repetitions become a series, which is written at intervals."""

    def __init__(self, controller: str, instance: str) -> None:
        self._controller = controller
        self._instance = instance
        self._recorded: dict[Hashable, _RecordedSeries] = {}

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        """Return the write for an occurrence; one that differs only in its note repeats an Event."""
        key = (occurrence.subject, occurrence.type, occurrence.reason, occurrence.action, _uid(occurrence))
        recorded = self._recorded.get(key)
        if recorded is None:
            body = self._body(occurrence)
            self._record(key, _RecordedSeries(body=body, last=occurrence.time))
            return EventWrite(body=body)
        recorded.count += 1
        recorded.last = occurrence.time
        return _series_write(recorded, occurrence.time) if recorded.written_at is None else None

    def due_writes(self, now: datetime) -> list[EventWrite]:
        writes = []
        for key, recorded in [*self._recorded.items()]:
            is_finished = now - recorded.last > FINISHED_AFTER
            if is_finished:
                del self._recorded[key]
            if recorded.written_at is not None and (
                is_finished or now - recorded.written_at >= REFRESH_INTERVAL
            ):
                writes.append(_series_write(recorded, now))
        return writes

    @property
    def may_have_series(self) -> bool:
        return any(recorded.written_at is not None for recorded in self._recorded.values())

    def _record(self, key: Hashable, recorded: _RecordedSeries) -> None:
        if len(self._recorded) >= CACHE_SIZE:
            del self._recorded[next(iter(self._recorded))]
        self._recorded[key] = recorded

    def _body(self, occurrence: Occurrence) -> dict[str, Any]:
        related = {"related": occurrence.related} if occurrence.related else {}
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": occurrence.new_name(), "namespace": occurrence.namespace},
            "eventTime": format_micro_time(occurrence.time),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": occurrence.action,
            "reason": occurrence.reason,
            "regarding": occurrence.about,
            **related,
            "note": occurrence.message[:MAX_NOTE_LENGTH],
            "type": occurrence.type,
        }


def _series_write(recorded: _RecordedSeries, now: datetime) -> EventWrite:
    recorded.written_at = now
    series = {"count": recorded.count, "lastObservedTime": format_micro_time(recorded.last)}
    return EventWrite(body={**recorded.body, "series": series}, patch={"series": series})


def _uid(occurrence: Occurrence) -> str:
    return occurrence.related.get("uid", "") if occurrence.related else ""
