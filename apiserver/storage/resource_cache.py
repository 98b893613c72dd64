"""The objects of one resource in memory, with their recent changes and those who watch them.

Changes are applied in the order of revisions, and offered to all watchers at once.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final

from sortedcontainers import SortedList

from mockube.etcd.kv import prefix_end

from .cache_watchers import CacheWatchers
from .label_indexes import LabelIndexes
from .recent_changes import Change, ChangeKind, RecentChanges
from .stored_object import StoredObject

MAX_UNINDEXED_OBJECTS: Final = 32
"""Up to this number of objects, iterating is faster than an index."""
MAX_SCANNED_OBJECTS: Final = 8
"""Up to this number of objects with a label, finding the range of keys takes longer than looking at the objects."""
MIN_SELECTIVITY: Final = 4
"""An index is used if fewer than 1 in 4 objects have the value: sorting more keys takes longer than comparing labels."""


class ResourceCache:
    """The objects of one resource, and their recent changes."""

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix
        self.objects: Final[dict[bytes, StoredObject]] = {}
        """By their keys."""
        self._keys: SortedList[bytes] = SortedList()
        self.history: Final = RecentChanges()
        self.watchers: Final = CacheWatchers(prefix)
        self._labels = LabelIndexes(self.objects)

    def __len__(self) -> int:
        return len(self.objects)

    def get(self, key: bytes) -> StoredObject | None:
        return self.objects.get(key)

    def select(
        self, prefix: bytes, label: tuple[str, str] | None = None, limit: int = 0
    ) -> Sequence[StoredObject]:
        """Return the objects at or below a prefix in order of keys, limited to the first `limit`.

        With a label that is indexed, those that lack it are left out if most do. A label and a limit cannot be combined.
        """
        objects = self.objects
        keys = None if label is None else self._labels.find(*label)
        if keys is not None and (
            len(keys) <= MAX_SCANNED_OBJECTS or MIN_SELECTIVITY * len(keys) < self.count(prefix)
        ):
            return [objects[key] for key in sorted(keys) if key.startswith(prefix)]
        low, high = self._bounds(prefix)
        return [objects[key] for key in self._keys[low : min(high, low + limit) if limit else high]]

    def is_indexed(self, label: str) -> bool:
        return label in self._labels or len(self) <= MAX_UNINDEXED_OBJECTS

    def index_label(self, name: str, step: int) -> Generator[None, None, None]:
        """Index a label, `step` objects at a time, unless it is being indexed. The index includes changes between two steps."""
        return self._labels.add(name, step)

    def count(self, prefix: bytes) -> int:
        """Return the number of objects at or below a prefix."""
        low, high = self._bounds(prefix)
        return high - low

    def _bounds(self, prefix: bytes) -> tuple[int, int]:
        return self._keys.bisect_left(prefix), self._keys.bisect_left(prefix_end(prefix))

    def between(self, low: bytes, high: bytes) -> Sequence[StoredObject]:
        """Return the objects of [low, high) in order of keys."""
        keys = self._keys
        return [self.objects[key] for key in keys[keys.bisect_left(low) : keys.bisect_left(high)]]

    def apply(self, change: Change) -> bool:
        """Apply a change and notify the watchers; return whether there is one."""
        key = change.after.key
        before = self.objects.pop(key, None)
        if change.kind is ChangeKind.DELETED:
            self._keys.remove(key)
        else:
            self.objects[key] = change.after
            if before is None:
                self._keys.add(key)
        self._labels.update(change)
        self.history.append(change)
        return self.watchers.notify(change)

    def replace(self, stored: StoredObject) -> None:
        """Replace the text of an object, at the same revision and with the same labels."""
        self.objects[stored.key] = stored

    def reset(self, objects: Sequence[StoredObject], revision: int, *, is_whole: bool = False) -> None:
        """Replace all objects by those of a list at a revision, in order of keys; clear the history.

        `is_whole`: nothing was written to the store before.
        """
        self.objects.clear()
        self.objects.update((stored.key, stored) for stored in objects)
        self._keys = SortedList(self.objects)
        self._labels.clear()
        self.history.reset(revision, is_whole=is_whole)

    def __iter__(self) -> Iterator[StoredObject]:
        return iter(self.objects.values())
