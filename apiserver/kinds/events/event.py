"""Event of events.k8s.io. It is stored as the core group's Event, whose fields have other names."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.checks import IMMUTABLE
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.core.event import EVENT_COLUMNS, EventFields, check_every_event, event_cells
from mockube.apiserver.kinds.kind import Conversion, Kind
from mockube.apiserver.kinds.strategy import UNSUPPORTED, Strategy
from mockube.apiserver.wire.table import Printer

# --- conversion

CORE, EVENTS = "v1", "events.k8s.io/v1"

_CORE_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENTS_NAMES: Final = {core: name for name, core in _CORE_NAMES.items()}

_ALWAYS_IN_CORE: Final = {"reportingComponent": "", "reportingInstance": ""}
"""Fields that are written even when empty, in the core group only."""


def to_core(event: Tree) -> Tree:
    renamed = {_CORE_NAMES.get(name, name): value for name, value in event.items()}
    return renamed | {"apiVersion": CORE} | (_ALWAYS_IN_CORE | _select_fields(renamed, _ALWAYS_IN_CORE))


def to_events(event: Tree) -> Tree:
    fields = {name: value for name, value in event.items() if value or name not in _ALWAYS_IN_CORE}
    return {_EVENTS_NAMES.get(name, name): value for name, value in fields.items()} | {"apiVersion": EVENTS}


def _select_fields(event: Tree, names: Tree) -> Tree:
    return {name: event[name] for name in names if name in event}


# --- validation


def _as_core(event: ReadOnlyTree) -> ReadOnlyTree:
    """Return an event with the core group's field names."""
    return {_CORE_NAMES.get(name, name): value for name, value in event.items()}


_MUST_BE_UNSET: Final = ("firstTimestamp", "lastTimestamp", "count", "source")


_UNCHANGED: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
    "eventTime", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip


_PATH_NAMES: Final = {"reportingComponent": "reportingController"}


_STRUCTS: Final = {
    "involvedObject": "core.ObjectReference",
    "source": "core.EventSource",
    "related": "core.ObjectReference",
}


def _check_series(event: ReadOnlyTree) -> Iterator[FieldError]:
    series, path = event.get("series"), ROOT.child("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield errors.invalid(path.child("count"), "", "should be at least 2")
    if series.get("lastObservedTime") is None:
        yield errors.required(path.child("lastObservedTime"))


def _check_type(event: ReadOnlyTree) -> Iterable[FieldError]:
    type_ = event.get("type", "")
    if type_ in ("Normal", "Warning"):
        return ()
    return (errors.invalid(ROOT.child("type"), "", f"has invalid value: {type_}"),)


def _create(new_event: ReadOnlyTree) -> Iterator[FieldError]:
    event = _as_core(new_event)
    yield from check_every_event(event, "reportingController")
    yield from objectmeta.check(event, SUBDOMAIN, namespaced=True)
    yield from _check_series(event)
    if event.get("eventTime") is None:
        yield errors.required(ROOT.child("eventTime"))
    yield from _check_type(event)
    for name in _MUST_BE_UNSET:
        if any(event[name].values()) if isinstance(event.get(name), Mapping) else event.get(name):
            yield errors.invalid(ROOT.child(name), "", "needs to be unset")


_ZEROS: Final = {
    "count": 0,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "related": None,
}
"""The values of unset fields in upstream's errors, unless they are empty strings."""


def _reported_value(name: str, value: Any) -> Any:
    if name in _STRUCTS and (value is not None or name not in _ZEROS):
        return internal(_STRUCTS[name], value or {})
    return _ZEROS.get(name, "") if value is None else value


def _value(event: ReadOnlyTree, name: str) -> Any:
    """Return the value of a field, None if it is not set. A reference to a related object may be set and empty."""
    value = event.get(name)
    return value if name == "related" else value or None


def _update(new_event: ReadOnlyTree, old_event: ReadOnlyTree) -> Iterator[FieldError]:
    """Check that only the series of an event changes."""
    new, old = _as_core(new_event), _as_core(old_event)
    yield from check_every_event(new, "reportingController")
    yield from objectmeta.check_change(new, old, SUBDOMAIN)
    if new.get("series") != old.get("series"):
        yield from _check_series(new)
    for name in _UNCHANGED:
        if _value(new, name) != _value(old, name):
            value = _reported_value(name, new.get(name))
            yield errors.invalid(ROOT.child(_PATH_NAMES.get(name, name)), value, IMMUTABLE)


_FIELDS: Final = EventFields(
    first="deprecatedFirstTimestamp",
    last="deprecatedLastTimestamp",
    count="deprecatedCount",
    regarding="regarding",
    source="deprecatedSource",
    controller="reportingController",
    message="note",
)


_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

KIND: Final = Kind(
    resource=Resource(
        group="events.k8s.io",
        version="v1",
        name="events",
        kind="Event",
        short_names=("ev",),
        uncached=True,
        storage_version=("", "v1"),
        selectable=(
            *(selectable(f"regarding.{name}", f"involvedObject.{name}") for name in _REFERENCE),
            selectable("reason"),
            selectable("reportingController", "reportingComponent"),
            selectable("type"),
        ),
    ),
    strategy=Strategy(create_on_update=True, dependents=UNSUPPORTED),
    validation=Validation(metadata_first=False, create=_create, update=_update),
    printer=Printer(columns=EVENT_COLUMNS, cells=partial(event_cells, _FIELDS)),
    conversion=Conversion(to_core, to_events),
)
