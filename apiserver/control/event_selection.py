"""Which event of a watch is selected: that with which an effect of a fault begins."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from mockube.apiserver.registry.watch_stream import WatchEvent

from .patterns import Pattern

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
EVENT_TYPES: Final = get_args(EventType)
MAX_SKIPPED_EVENTS: Final = 10_000
"""Each skipped event is remembered, because a watch that resumes may get it again."""


class EventSelector(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Criteria of an event, which all have to match, as plain data. The objects with which a watch begins are no events."""

    types: tuple[str, ...] = ()
    namespace: str | None = None
    name: str = ""
    skip: int = 0
    """How many matching events come before it."""


class SelectedEvent(Struct, frozen=True, kw_only=True):
    """An event that was selected."""

    type: str
    revision: int


class FirstEvent:
    """The event that a selector selects. Several watches may get it, and count it once."""

    def __init__(self, selector: EventSelector, on_found: Callable[[], None]) -> None:
        """Compile a selector; raise ValueError for a pattern that is too long."""
        __tracebackhide__ = True
        self._skip, self._on_found = selector.skip, on_found
        self._types = frozenset(selector.types)
        self._namespace = None if selector.namespace is None else Pattern(selector.namespace)
        self._name = Pattern(selector.name) if selector.name else None
        self.cost = sum(each.cost for each in (self._namespace, self._name) if each is not None)
        """The microseconds that a comparison takes at most, more than one without wildcards."""
        self._skipped: set[tuple[bytes, int]] = set()
        """The keys and revisions of the events before it."""
        self.found: SelectedEvent | None = None

    def precedes(self, event: WatchEvent, prefix: bytes) -> bool:
        """Return whether an event of a watch of a resource is the selected one, or comes after it."""
        stored, change = event.stored, event.change
        if stored is None or change is None:
            return False
        if self.found is not None:
            return change.revision >= self.found.revision
        namespace, _, name = stored.key.removeprefix(prefix).decode(errors="replace").rpartition("/")
        at = stored.key, change.revision
        if at in self._skipped or not self._matches(event.kind, namespace, name):
            return False
        if len(self._skipped) < self._skip:
            self._skipped.add(at)
            return False
        self.found = SelectedEvent(type=event.kind, revision=change.revision)
        self._on_found()
        return True

    def _matches(self, type_: str, namespace: str, name: str) -> bool:
        return (
            (not self._types or type_ in self._types)
            and (self._namespace is None or self._namespace.matches(namespace))
            and (self._name is None or self._name.matches(name))
        )
