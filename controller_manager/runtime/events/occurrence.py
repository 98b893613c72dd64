"""Something that was said about an object, and how it gets to the server. Pure."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from apimachinery import meta
from controller_manager.runtime.resource import Tree

NO_NAMESPACE: Final = "default"
"""Where events about objects live that have no namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    at: datetime
    nanoseconds: int
    """The same time, and no other occurrence's: events are named after it."""
    about: Tree
    """A reference to the object."""
    type: str
    reason: str
    message: str
    action: str = ""
    related: Tree | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWrite:
    body: dict[str, Any]
    """The whole Event, as it is made where there is none."""
    change: Tree | None = None
    """What to change in the one that is there already."""


class Shape(Protocol):
    """One of the two kinds of Event, as one component records it."""

    def write(self, occurrence: Occurrence) -> EventWrite | None:
        """What is to be written; None where it has been said often enough."""

    def overdue(self, now: datetime) -> list[EventWrite]:
        """What is to be written as time has passed. Forgets what is over."""


def reference(obj: Tree) -> dict[str, str]:
    """What an Event says of which object it is about."""
    fields = {
        "kind": meta.kind(obj),
        "namespace": meta.namespace(obj),
        "name": meta.name(obj),
        "uid": meta.uid(obj),
        "apiVersion": meta.api_version(obj),
        "resourceVersion": meta.resource_version(obj),
    }
    return {field: value for field, value in fields.items() if value}
