"""The changes of one resource, and which of them are kept for a watch that resumes."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeAlias

from mockube.etcd.kv import FIRST_REVISION

from .stored_object import StoredObject

HISTORY_SECONDS: Final = 75.0
"""How long changes are kept for a watch that resumes; upstream's target."""
MIN_HISTORY: Final = 100
MAX_HISTORY: Final = 102_400
"""The minimum and maximum of changes in the history, regardless of their age; upstream's bounds."""
IDLE_HISTORY: Final = 10_000
FORGOTTEN_AT_ONCE: Final = 5_000
"""How many changes stay if no more come, and how many older ones are dropped at a time, in some milliseconds: the deletion of
100,000 pods must not fill the memory for ever.
"""
LARGE: Final = 16 * 1024
HISTORY_BYTES: Final = 8 << 20
"""Bytes of a large object; and the limit of all replaced large objects, above which half of the history is dropped."""
MAX_CHANGES_WITH_FRAMES: Final = 256
"""The number of changes whose encoded frames are cached: most watches are not further behind."""
MAX_UNCOMPRESSED_CHANGES: Final = 2_048
"""The number of newest changes whose objects are not compressed: a short history is small."""


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


class TooOldResourceVersion(Exception):
    """The history begins after the requested revision."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {revision} ({oldest})")


class RecentChanges:
    """The recent changes of one resource in the order of their revisions; upstream's ring of a watch cache."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._bytes = 0
        """The bytes of replaced large objects."""
        self._oldest = 0
        """Changes at this revision and before are not in the history."""
        self._is_whole = False
        """Whether the history has all changes since the first revision of the store."""

    @property
    def newest(self) -> int:
        """The revision of the last change."""
        return self._changes[-1].revision if self._changes else self._oldest

    def reset(self, revision: int, *, is_whole: bool = False) -> None:
        """Begin after a revision. `is_whole`: nothing was written to the store before."""
        self._changes = []
        self._bytes = 0
        self._oldest = revision
        self._is_whole = is_whole

    def append(self, change: Change) -> None:
        """Add a change; an older one loses its frames, another one is compressed, and the oldest may be dropped."""
        changes = self._changes
        changes.append(change)
        self._bytes += _large_bytes(change)
        count = len(changes)
        if count > MAX_CHANGES_WITH_FRAMES:
            changes[-1 - MAX_CHANGES_WITH_FRAMES].drop_frames()
        if count > MAX_UNCOMPRESSED_CHANGES:
            changes[-1 - MAX_UNCOMPRESSED_CHANGES].compress()
        is_large = self._bytes > HISTORY_BYTES and count > 1
        if count < 2 * MIN_HISTORY and not is_large:
            return
        # Half of them at a time, so that few appends pay for it.
        half = count // 2
        is_old = change.observed_at - changes[half].observed_at > HISTORY_SECONDS
        if is_large or count > MAX_HISTORY or is_old:
            self._forget(half)

    def since(self, revision: int, prefix: bytes) -> Sequence[Change]:
        """Return the changes below a prefix after a revision; raise `TooOldResourceVersion` if the history begins later."""
        # Other old revisions are those of an earlier store: `initial_revision` in store.py.
        if revision < self._oldest and not (self._is_whole and revision == FIRST_REVISION):
            raise TooOldResourceVersion(revision, self._oldest)
        start = bisect_right(self._changes, revision, key=_revision)
        return [change for change in self._changes[start:] if change.after.key.startswith(prefix)]

    def forget_old(self, now: float) -> None:
        """Drop changes that are old enough if there are thousands; called at an interval, as no change comes to drop them."""
        count = min(len(self._changes) - IDLE_HISTORY, FORGOTTEN_AT_ONCE)
        if count > 0 and now - self._changes[count - 1].observed_at > HISTORY_SECONDS:
            self._forget(count)

    def _forget(self, count: int) -> None:
        self._oldest = self._changes[count - 1].revision
        self._is_whole = False
        self._bytes -= sum(map(_large_bytes, self._changes[:count]))
        del self._changes[:count]


def _large_bytes(change: Change) -> int:
    size = 0 if change.before is None else change.before.size
    return size if size >= LARGE else 0


def _revision(change: Change) -> int:
    return change.revision
