"""What is kept of objects as long as they exist: one record for each, which is dropped with its object.

Each class that keeps something of a pod has a part of the pod's record, by the type of the part, and never has a table of pods.
"""

from typing import Any, TypeVar

T = TypeVar("T")


class Ending:
    """A part of a record that has to do something when its object is gone."""

    __slots__ = ()

    def end(self) -> None:
        """End what still runs, and leave indexes."""


class Records:
    """The records of pods or nodes, by uid; of most there is nothing to keep."""

    def __init__(self) -> None:
        self._records: dict[str, dict[type, Any]] = {}

    def find(self, uid: str, part: type[T]) -> T | None:
        """Return a part of a record; None if there is none."""
        record = self._records.get(uid)
        return None if record is None else record.get(part)

    def ensure(self, uid: str, part: type[T]) -> T:
        """Return a part of a record; one that is not there yet is made."""
        record = self._records.get(uid)
        if record is None:
            record = self._records[uid] = {}
        present: T | None = record.get(part)
        if present is None:
            present = record[part] = part()
        return present

    def put(self, uid: str, part: object) -> None:
        """Keep a part in a record, instead of another one of its type."""
        self._records.setdefault(uid, {})[type(part)] = part

    def pop(self, uid: str, part: type[T]) -> T | None:
        """Remove a part from a record, and return it; None if there is none."""
        record = self._records.get(uid)
        if record is None:
            return None
        removed: T | None = record.pop(part, None)
        if not record:
            del self._records[uid]
        return removed

    def remove(self, uid: str) -> None:
        """Drop the record of an object that is gone."""
        for part in self._records.pop(uid, {}).values():
            if isinstance(part, Ending):
                part.end()
