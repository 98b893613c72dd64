"""The objects of one resource in memory, its recent changes, and the objects that cannot be read.

Changes are applied in the order of revisions, and offered to all watchers at once. A watcher does not block: it has its
own bounded queue.
"""

import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, Protocol, TypeAlias

from sortedcontainers import SortedList

from mockube.etcd.kv import FIRST_REVISION, prefix_end

from .stored_object import MAX_REASON, StoredObject


class ChangeKind(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


Encode: TypeAlias = Callable[[str, StoredObject], bytes]
"""Encodes an event as a watch's frame."""


class Change:
    """A change of an object. `after` is the new object; for a deletion, the last one at the deletion's revision."""

    __slots__ = ("_frames", "after", "before", "kind", "observed_at")

    def __init__(
        self, kind: ChangeKind, after: StoredObject, before: StoredObject | None, observed_at: float
    ) -> None:
        self.kind = kind
        self.after = after
        self.before = before
        self.observed_at = observed_at
        """The time at which this process received it, in seconds of its clock."""
        self._frames: dict[tuple[Encode, str], bytes] | None = {}
        """The encoded frames, by format and kind; None for an older change, for which few watches need them."""

    @property
    def revision(self) -> int:
        return self.after.revision

    def drop_frames(self) -> None:
        """Drop the encoded frames, and keep none from now on: they can be encoded again."""
        self._frames = None

    def compress(self) -> None:
        """Compress the object that this change replaced or deleted: only a watch that resumes reads it."""
        if self.before is not None:
            self.before.compress(self.after)
        if self.kind is ChangeKind.DELETED:
            self.after.compress(None)

    def frame(self, encode: Encode, kind: str, stored: StoredObject) -> bytes:
        """Return the encoded event; all watches of the same format share the bytes of a recent one."""
        frames = self._frames
        if frames is None:
            return encode(kind, stored)
        encoded = frames.get((encode, kind))
        if encoded is None:
            encoded = frames[encode, kind] = encode(kind, stored)
        return encoded


LOG = logging.getLogger(__name__)

HISTORY_SECONDS = 75.0
"""How long changes are kept for a watch that resumes; upstream's target."""
MIN_HISTORY, MAX_HISTORY = 100, 102_400
"""The minimum and maximum of changes in the history, regardless of their age; upstream's bounds."""
IDLE_HISTORY, FORGOTTEN_AT_ONCE = 10_000, 5_000
"""How many changes stay if no more come, and how many older ones are dropped at a time, in some milliseconds: the deletion of
100,000 pods must not fill the memory for ever.
"""
LARGE, HISTORY_BYTES = 16 * 1024, 8 << 20
"""Bytes of a large object; and the limit of all replaced large objects, above which half of the history is dropped."""

MAX_CHANGES_WITH_FRAMES = 256
"""The number of changes whose encoded frames are cached: most watches are not further behind."""
MAX_UNCOMPRESSED_CHANGES = 2_048
"""The number of newest changes whose objects are not compressed: a short history is small."""
MAX_UNINDEXED_OBJECTS = 32
"""Up to this number of objects, iterating is faster than an index."""
MAX_SCANNED_OBJECTS = 8
"""Up to this number of objects with a label, finding the range of keys takes longer than looking at the objects."""
MAX_INDEXED_LABELS = 16
"""The maximum of indexed labels of a resource; the oldest index is dropped first."""
MIN_SELECTIVITY = 4
"""An index is used if fewer than 1 in 4 objects have the value: sorting more keys takes longer than comparing labels."""
MAX_REPORTED: Final = 10_000
"""The number of logged objects after which the record of them is cleared."""

LabelIndex: TypeAlias = dict[str, set[bytes]]
"""By a label's value, the keys of the objects that have it."""


class CacheWatcher(Protocol):
    """A subscriber to every change below a prefix."""

    prefix: bytes

    def handle_change(self, change: Change) -> None:
        """Receive a change; must not wait."""

    def handle_missed_change(self) -> None:
        """Handle the loss of a change, after `handle_change` raised an error."""


class TooOldResourceVersion(Exception):
    """The history begins after the requested revision."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {revision} ({oldest})")


class ResourceCache:
    """The objects of one resource, and their recent changes."""

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix
        self.objects: Final[dict[bytes, StoredObject]] = {}
        """By their keys."""
        self._keys: SortedList[bytes] = SortedList()
        self._history: list[Change] = []
        self._history_bytes = 0
        """The bytes of replaced large objects in the history."""
        self._oldest = 0
        """Changes at this revision and before are not in the history."""
        self._is_whole = False
        """Whether the history has all changes since the first revision of the store."""
        self._watchers: dict[bytes, list[CacheWatcher]] = {}
        self._labels: dict[str, LabelIndex] = {}
        """The indexes of labels that selectors have used, by name."""
        self._unfinished: dict[str, LabelIndex] = {}
        """The indexes of labels that are being indexed, by name."""

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
        index = None if label is None else self._labels.get(label[0])
        keys = None if index is None or label is None else index.get(label[1], ())
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
        if name in self._unfinished:
            return
        index = self._unfinished[name] = {}
        try:
            keys = list(self.objects)
            for start in range(0, len(keys), step):
                for key in keys[start : start + step]:
                    stored = self.objects.get(key)
                    if stored is not None and (value := stored.labels.get(name)) is not None:
                        index.setdefault(value, set()).add(key)
                yield
            if self._unfinished.get(name) is index:
                self._labels[name] = index
            if len(self._labels) > MAX_INDEXED_LABELS:
                del self._labels[next(iter(self._labels))]
        finally:
            if self._unfinished.get(name) is index:
                del self._unfinished[name]

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
        self._index(change)
        self._history.append(change)
        self._history_bytes += _large_bytes(change)
        if len(self._history) > MAX_CHANGES_WITH_FRAMES:
            self._history[-1 - MAX_CHANGES_WITH_FRAMES].drop_frames()
        if len(self._history) > MAX_UNCOMPRESSED_CHANGES:
            self._history[-1 - MAX_UNCOMPRESSED_CHANGES].compress()
        self._trim(change.observed_at)
        watchers = self._watchers_of(key)
        for watcher in watchers:
            try:
                watcher.handle_change(change)
            except Exception:
                LOG.exception("a watch could not process the change of %s", key.decode(errors="replace"))
                watcher.handle_missed_change()
        return bool(watchers)

    @property
    def newest(self) -> int:
        """The revision of the last change."""
        return self._history[-1].revision if self._history else self._oldest

    def replace(self, stored: StoredObject) -> None:
        """Replace the text of an object, at the same revision and with the same labels."""
        self.objects[stored.key] = stored

    def since(self, revision: int, prefix: bytes) -> Sequence[Change]:
        """Return the changes below a prefix after a revision; raise `TooOldResourceVersion` if the history begins later."""
        # Other old revisions are those of an earlier store: `initial_revision` in store.py.
        if revision < self._oldest and not (self._is_whole and revision == FIRST_REVISION):
            raise TooOldResourceVersion(revision, self._oldest)
        start = bisect_right(self._history, revision, key=_revision)
        return [change for change in self._history[start:] if change.after.key.startswith(prefix)]

    def add_watcher(self, watcher: CacheWatcher) -> None:
        self._watchers.setdefault(watcher.prefix, []).append(watcher)

    def remove_watcher(self, watcher: CacheWatcher) -> None:
        watchers = self._watchers[watcher.prefix]
        watchers.remove(watcher)
        if not watchers:
            del self._watchers[watcher.prefix]

    def watchers(self) -> list[CacheWatcher]:
        return [watcher for watchers in self._watchers.values() for watcher in watchers]

    def reset(self, objects: Sequence[StoredObject], revision: int, *, is_whole: bool = False) -> None:
        """Replace all objects by those of a list at a revision, in order of keys; clear the history.

        `is_whole`: nothing was written to the store before.
        """
        self.objects.clear()
        self.objects.update((stored.key, stored) for stored in objects)
        self._keys = SortedList(self.objects)
        self._history = []
        self._history_bytes = 0
        self._labels = {}
        self._unfinished = {}
        self._oldest = revision
        self._is_whole = is_whole

    def __iter__(self) -> Iterator[StoredObject]:
        return iter(self.objects.values())

    def _index(self, change: Change) -> None:
        """Update the label indexes."""
        if not self._labels and not self._unfinished:
            return
        for name, by_value in (*self._labels.items(), *self._unfinished.items()):
            if change.before is not None and (old_value := change.before.labels.get(name)) is not None:
                by_value.get(old_value, set()).discard(change.after.key)
            if (
                change.kind is not ChangeKind.DELETED
                and (new_value := change.after.labels.get(name)) is not None
            ):
                by_value.setdefault(new_value, set()).add(change.after.key)

    def _watchers_of(self, key: bytes) -> list[CacheWatcher]:
        """Return the watchers of the resource, of the key's namespace and of the key."""
        if not self._watchers:
            return []
        watchers = list(self._watchers.get(self.prefix, ()))
        slash = key.rfind(b"/") + 1
        if slash > len(self.prefix):
            watchers += self._watchers.get(key[:slash], ())
        watchers += self._watchers.get(key, ())
        return watchers

    def _trim(self, now: float) -> None:
        """Drop the older half of the history if it is old enough, or the history is too large."""
        count = len(self._history)
        is_large = self._history_bytes > HISTORY_BYTES and count > 1
        if count < 2 * MIN_HISTORY and not is_large:
            return
        half = count // 2
        if is_large or count > MAX_HISTORY or now - self._history[half].observed_at > HISTORY_SECONDS:
            self._forget(half)

    def forget_old(self, now: float) -> None:
        """Drop changes that are old enough if there are thousands; called at an interval, as no change comes to drop them."""
        count = min(len(self._history) - IDLE_HISTORY, FORGOTTEN_AT_ONCE)
        if count > 0 and now - self._history[count - 1].observed_at > HISTORY_SECONDS:
            self._forget(count)

    def _forget(self, count: int) -> None:
        self._oldest = self._history[count - 1].revision
        self._is_whole = False
        self._history_bytes -= sum(map(_large_bytes, self._history[:count]))
        del self._history[:count]


def _large_bytes(change: Change) -> int:
    size = 0 if change.before is None else change.before.size
    return size if size >= LARGE else 0


def _revision(change: Change) -> int:
    return change.revision


# --- objects that cannot be read


class UnreadableObjects:
    """Values below one prefix of the store that cannot be read as the object of their key.

    Each is counted, and logged once for each revision. Lists and watches omit it; a get returns an error; it can be
    deleted by name.
    """

    def __init__(self) -> None:
        self._revisions: dict[bytes, int] = {}
        self._reported: dict[bytes, int] = {}
        self.failures: Counter[bytes] = Counter()
        """The number of unreadable values by folder."""

    def __bool__(self) -> bool:
        return bool(self._revisions)

    @property
    def revisions(self) -> Mapping[bytes, int]:
        """The keys whose values cannot be read now, with their revisions."""
        return self._revisions

    def below(self, prefix: bytes) -> Sequence[bytes]:
        return sorted(key for key in self._revisions if key.startswith(prefix))

    def add(self, folder: bytes, key: bytes, revision: int, error: Exception) -> None:
        self._revisions[key] = revision
        self.report(folder, key, revision, error)

    def discard(self, key: bytes) -> None:
        self._revisions.pop(key, None)

    def clear(self) -> None:
        """Reset before everything is listed again."""
        self._revisions.clear()

    def report(self, folder: bytes, key: bytes, revision: int, error: Exception) -> None:
        """Count and log an object that cannot be read, or not be rendered for a client."""
        if self._reported.get(key) == revision:
            return
        if len(self._reported) >= MAX_REPORTED:
            self._reported.clear()
        self._reported[key] = revision
        self.failures[folder] += 1
        reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
        LOG.error("The object at %s cannot be read: %s", key.decode(errors="replace"), reason)
