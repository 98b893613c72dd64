"""Events of events.k8s.io/v1, as the scheduler records them: the same again within minutes makes the event a series.

Numbers are those of client-go's tools/events. Pure, and of one component.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from apimachinery.timestamps import format_micro_time
from controller_manager.runtime.events.occurrence import EventWrite, Occurrence

FINISHED_AFTER: Final = timedelta(minutes=6)
"""How long after the last time it is another event."""
REFRESHED_AFTER: Final = timedelta(minutes=30)
"""How often a series that goes on is written."""
LONGEST_NOTE: Final = 1024
REMEMBERED: Final = 4096
"""Events; beyond that the oldest is forgotten, and is told as new if it comes again."""


@dataclass(slots=True)
class _Told:
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
        self._told: dict[Hashable, _Told] = {}

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        """The note is no part of what makes events the same."""
        key = (occurrence.subject, occurrence.type, occurrence.reason, occurrence.action, _uid(occurrence))
        told = self._told.get(key)
        if told is None:
            body = self._body(occurrence)
            self._remember(key, _Told(body=body, last=occurrence.at))
            return EventWrite(body=body)
        told.count += 1
        told.last = occurrence.at
        return _series(told, occurrence.at) if told.written is None else None

    def overdue(self, now: datetime) -> list[EventWrite]:
        writes = []
        for key, told in [*self._told.items()]:
            finished = now - told.last > FINISHED_AFTER
            if finished:
                del self._told[key]
            if told.written is not None and (finished or now - told.written >= REFRESHED_AFTER):
                writes.append(_series(told, now))
        return writes

    def _remember(self, key: Hashable, told: _Told) -> None:
        if len(self._told) >= REMEMBERED:
            del self._told[next(iter(self._told))]
        self._told[key] = told

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
            "note": occurrence.message[:LONGEST_NOTE],
            "type": occurrence.type,
        }


def _series(told: _Told, now: datetime) -> EventWrite:
    told.written = now
    series = {"count": told.count, "lastObservedTime": format_micro_time(told.last)}
    return EventWrite(body={**told.body, "series": series}, change={"series": series})


def _uid(occurrence: Occurrence) -> str:
    return occurrence.related.get("uid", "") if occurrence.related else ""
