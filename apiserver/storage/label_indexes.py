"""The indexes of the labels that selectors have used, for the objects of one resource."""

from collections.abc import Collection, Generator, Mapping
from typing import Final, TypeAlias

from .recent_changes import Change, ChangeKind
from .stored_object import StoredObject

MAX_INDEXED_LABELS: Final = 16
"""The maximum of indexed labels of a resource; the oldest index is dropped first."""

LabelIndex: TypeAlias = dict[str, set[bytes]]
"""By a label's value, the keys of the objects that have it."""


class LabelIndexes:
    def __init__(self, objects: Mapping[bytes, StoredObject]) -> None:
        self._objects = objects
        self._indexes: dict[str, LabelIndex] = {}
        """By the label's name."""
        self._unfinished: dict[str, LabelIndex] = {}
        """The indexes that are being made."""

    def __contains__(self, name: str) -> bool:
        return name in self._indexes

    def find(self, name: str, value: str) -> Collection[bytes] | None:
        """Return the keys of the objects whose label has a value; None if the label is not indexed."""
        index = self._indexes.get(name)
        return None if index is None else index.get(value, ())

    def add(self, name: str, step: int) -> Generator[None, None, None]:
        """Index a label, `step` objects at a time, unless it is being indexed. The index includes changes between two steps."""
        if name in self._unfinished:
            return
        index = self._unfinished[name] = {}
        try:
            keys = list(self._objects)
            for start in range(0, len(keys), step):
                for key in keys[start : start + step]:
                    stored = self._objects.get(key)
                    if stored is not None and (value := stored.labels.get(name)) is not None:
                        index.setdefault(value, set()).add(key)
                yield
            if self._unfinished.get(name) is index:
                self._indexes[name] = index
            if len(self._indexes) > MAX_INDEXED_LABELS:
                del self._indexes[next(iter(self._indexes))]
        finally:
            if self._unfinished.get(name) is index:
                del self._unfinished[name]

    def update(self, change: Change) -> None:
        if not self._indexes and not self._unfinished:
            return
        for name, by_value in (*self._indexes.items(), *self._unfinished.items()):
            if change.before is not None and (old_value := change.before.labels.get(name)) is not None:
                by_value.get(old_value, set()).discard(change.after.key)
            if (
                change.kind is not ChangeKind.DELETED
                and (new_value := change.after.labels.get(name)) is not None
            ):
                by_value.setdefault(new_value, set()).add(change.after.key)

    def clear(self) -> None:
        """Drop all indexes; one that is being made is not used."""
        self._indexes = {}
        self._unfinished = {}
