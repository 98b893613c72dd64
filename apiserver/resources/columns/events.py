"""The columns of events: the core group's and events.k8s.io's, which are the same events under other fields' names."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import number, part, text, time
from apiserver.wire.table import Column, Printer, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """What a group calls the fields whose names differ."""

    first: str
    last: str
    count: str
    regarding: str
    source: str
    controller: str
    message: str


_CORE: Final = _Fields(
    first="firstTimestamp",
    last="lastTimestamp",
    count="count",
    regarding="involvedObject",
    source="source",
    controller="reportingComponent",
    message="message",
)
_EVENTS: Final = _Fields(
    first="deprecatedFirstTimestamp",
    last="deprecatedLastTimestamp",
    count="deprecatedCount",
    regarding="regarding",
    source="deprecatedSource",
    controller="reportingController",
    message="note",
)


def _cells(fields: _Fields, event: Tree, now: datetime) -> list[Any]:
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


def _source(fields: _Fields, event: Tree) -> str:
    component = text(event, fields.source, "component") or text(event, fields.controller)
    instance = text(event, fields.source, "host") or text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component


_COLUMNS: Final = (
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

CORE_PRINTERS: Final[Mapping[str, Printer]] = {
    "Event": Printer(columns=_COLUMNS, cells=partial(_cells, _CORE)),
}
PRINTERS: Final[Mapping[str, Printer]] = {
    "Event": Printer(columns=_COLUMNS, cells=partial(_cells, _EVENTS)),
}
