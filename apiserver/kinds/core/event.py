"""Event of the core group, and the rules and columns that it shares with Event of events.k8s.io.

Both groups serve the same objects under different field names. Upstream's errors have those of the core group.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import number, part, text, time
from mockube.apiserver.kinds.common.validation import Validation, get_struct
from mockube.apiserver.kinds.common.validation_context import is_before
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import UNSUPPORTED, Strategy
from mockube.apiserver.wire.table import Column, Printer

_MAX_LENGTH: Final = 128


_MAX_MESSAGE_LENGTH: Final = 1024


def _does_not_match(namespace: str) -> FieldError:
    return errors.invalid(
        ROOT.child("involvedObject", "namespace"), namespace, "does not match event.namespace"
    )


def _check_legacy_event(event: ReadOnlyTree) -> Iterable[FieldError]:
    """Check an event without eventTime."""
    namespace, object_namespace = (
        meta.namespace(event),
        get_struct(event, "involvedObject").get("namespace", ""),
    )
    matches = namespace == object_namespace if object_namespace else namespace in ("", "default")
    return () if matches else (_does_not_match(object_namespace),)


def _check_text(event: ReadOnlyTree, name: str, path_name: str) -> Iterator[FieldError]:
    text, path = event.get(name, ""), ROOT.child(path_name)
    if not text:
        yield errors.required(path)
    if len(text.encode()) > _MAX_LENGTH:
        yield errors.invalid(path, "", f"can have at most {_MAX_LENGTH} characters")


def _check_event(event: ReadOnlyTree, controller_path: str) -> Iterator[FieldError]:
    object_namespace = get_struct(event, "involvedObject").get("namespace", "")
    if not object_namespace and meta.namespace(event) not in ("default", "kube-system"):
        yield _does_not_match(object_namespace)
    controller, path = event.get("reportingComponent", ""), ROOT.child(controller_path)
    if not controller:
        yield errors.required(path)
    for problem in names.check_label_key(controller):
        yield errors.invalid(path, controller, problem)
    for name in ("reportingInstance", "action", "reason"):
        yield from _check_text(event, name, name)
    if len(event.get("message", "").encode()) > _MAX_MESSAGE_LENGTH:
        yield errors.invalid(ROOT.child("message"), "", f"can have at most {_MAX_MESSAGE_LENGTH} characters")


def check_every_event(event: ReadOnlyTree, controller_path: str) -> Iterator[FieldError]:
    if event.get("eventTime") is None:
        yield from _check_legacy_event(event)
    else:
        yield from _check_event(event, controller_path)
    for problem in names.check_dns1123_subdomain(meta.namespace(event)) if is_before("1.37") else ():
        yield errors.invalid(ROOT.child("namespace"), meta.namespace(event), problem)


def _create(event: ReadOnlyTree) -> Iterable[FieldError]:
    return check_every_event(event, "reportingComponent")


def _update(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterable[FieldError]:
    return _create(new)


# --- columns


class EventFields(Struct, frozen=True, kw_only=True):
    """The names of a group for the fields whose names differ between the groups."""

    first: str
    last: str
    count: str
    regarding: str
    source: str
    controller: str
    message: str


_CORE: Final = EventFields(
    first="firstTimestamp",
    last="lastTimestamp",
    count="count",
    regarding="involvedObject",
    source="source",
    controller="reportingComponent",
    message="message",
)


def event_cells(fields: EventFields, event: Tree, now: datetime) -> list[Any]:
    first = time(event, fields.first) or time(event, "eventTime")
    last = time(event, fields.last) or first
    count = number(event, fields.count) or 1
    series = part(event, "series")
    if series is not None:
        last, count = time(series, "lastObservedTime"), number(series, "count")
    return [
        ages.since(last, now),
        text(event, "type"),
        text(event, "reason"),
        _object(part(event, fields.regarding)),
        text(event, fields.regarding, "fieldPath"),
        _source(fields, event),
        text(event, fields.message).strip(),
        ages.since(first, now),
        count,
        meta.name(event),
    ]


def _object(reference: Any) -> str:
    kind, name = text(reference, "kind").lower(), text(reference, "name")
    return f"{kind}/{name}" if name else kind


def _source(fields: EventFields, event: Tree) -> str:
    component = text(event, fields.source, "component") or text(event, fields.controller)
    instance = text(event, fields.source, "host") or text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component


EVENT_COLUMNS: Final = (
    Column(name="Last Seen"),
    Column(name="Type"),
    Column(name="Reason"),
    Column(name="Object"),
    Column(name="Subobject", priority=1),
    Column(name="Source", priority=1),
    Column(name="Message"),
    Column(name="First Seen", priority=1),
    Column(name="Count", priority=1),
    Column(name="Name", format="name", priority=1),
)


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="events",
        kind="Event",
        short_names=("ev",),
        uncached=True,
        selectable=(
            selectable("involvedObject.kind"),
            selectable("involvedObject.namespace"),
            selectable("involvedObject.name"),
            selectable("involvedObject.uid"),
            selectable("involvedObject.apiVersion"),
            selectable("involvedObject.resourceVersion"),
            selectable("involvedObject.fieldPath"),
            selectable("reason"),
            selectable("reportingComponent"),
            selectable("source", "source.component", "reportingComponent"),
            selectable("type"),
        ),
    ),
    strategy=Strategy(create_on_update=True, dependents=UNSUPPORTED),
    validation=Validation(metadata_first=False, create=_create, update=_update),
    printer=Printer(columns=EVENT_COLUMNS, cells=partial(event_cells, _CORE)),
)
