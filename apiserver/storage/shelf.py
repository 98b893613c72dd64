"""The objects of one resource, kept at hand, with what happened to them lately.

A shelf is told of changes in the order of revisions and tells its followers at once. It never waits: a follower
keeps its own queue and its own bound.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol

from sortedcontainers import SortedList

from apiserver.storage.change import Change, ChangeKind
from apiserver.storage.stored import Stored
from etcd.kv import prefix_end

HISTORY_SECONDS = 75.0
"""How long a change can still be replayed to a watch that comes back, as upstream aims at."""
HISTORY_LEAST, HISTORY_MOST = 100, 102_400
"""Changes, whatever their age; upstream's bounds."""

FRAMED = 256
"""Changes whose frames are kept for others who watch: all that follow closely have had theirs by then."""
SMALL = 32
"""Objects that are sooner looked at than looked up."""
INDEXED_LABELS = 16
"""Of one resource; the one indexed first is dropped for the next."""


class Follower(Protocol):
    """Somebody who wants every change below a prefix."""

    prefix: bytes

    def offer(self, change: Change) -> None:
        """Take note of a change; must neither wait nor fail."""


class TooOld(Exception):
    """History does not reach back that far."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {revision} ({oldest})")


class Shelf:
    """One resource's objects."""

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix
        self._objects: dict[bytes, Stored] = {}
        self._keys: SortedList[bytes] = SortedList()
        self._history: list[Change] = []
        self._oldest = 0
        """Changes at this revision and before are not in the history."""
        self._followers: dict[bytes, list[Follower]] = {}
        self._labels: dict[str, dict[str, set[bytes]]] = {}
        """By a label's name and value, who has it: of the labels that were selected by."""

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key: bytes) -> Stored | None:
        return self._objects.get(key)

    def select(self, prefix: bytes, label: tuple[str, str] | None = None, limit: int = 0) -> Sequence[Stored]:
        """The objects at or below a prefix in order of keys, the first so many if there is a limit.

        With a label only those that may have it are looked at.
        """
        objects = self._objects
        low, high = self._bounds(prefix)
        if label is not None and high - low > SMALL:
            return self._labelled(prefix, *label)
        return [objects[key] for key in self._keys[low : min(high, low + limit) if limit else high]]

    def count(self, prefix: bytes) -> int:
        """How many objects are at or below a prefix."""
        low, high = self._bounds(prefix)
        return high - low

    def _bounds(self, prefix: bytes) -> tuple[int, int]:
        return self._keys.bisect_left(prefix), self._keys.bisect_left(prefix_end(prefix))

    def between(self, low: bytes, high: bytes) -> Sequence[Stored]:
        """The objects of [low, high) in order of keys."""
        keys = self._keys
        return [self._objects[key] for key in keys[keys.bisect_left(low) : keys.bisect_left(high)]]

    def apply(self, change: Change) -> None:
        """Take a change in and tell those who follow."""
        key = change.after.key
        before = self._objects.pop(key, None)
        if change.kind is ChangeKind.DELETED:
            self._keys.remove(key)
        else:
            self._objects[key] = change.after
            if before is None:
                self._keys.add(key)
        self._index(change)
        self._history.append(change)
        if len(self._history) > FRAMED:
            self._history[-1 - FRAMED].let_go()
        self._trim(change.moment)
        for follower in self._interested(key):
            follower.offer(change)

    def since(self, revision: int, prefix: bytes) -> Sequence[Change]:
        """Every change below a prefix later than a revision."""
        if revision < self._oldest:
            raise TooOld(revision, self._oldest + 1)
        start = bisect_right(self._history, revision, key=_revision)
        return [change for change in self._history[start:] if change.after.key.startswith(prefix)]

    def follow(self, follower: Follower) -> None:
        self._followers.setdefault(follower.prefix, []).append(follower)

    def unfollow(self, follower: Follower) -> None:
        followers = self._followers[follower.prefix]
        followers.remove(follower)
        if not followers:
            del self._followers[follower.prefix]

    def followers(self) -> list[Follower]:
        return [follower for followers in self._followers.values() for follower in followers]

    def reset(self, objects: Sequence[Stored], revision: int) -> None:
        """Begin with what a list showed at a revision, in order of keys."""
        self._objects = {stored.key: stored for stored in objects}
        self._keys = SortedList(self._objects)
        self._history = []
        self._labels = {}
        self._oldest = revision

    def __iter__(self) -> Iterator[Stored]:
        return iter(self._objects.values())

    def _labelled(self, prefix: bytes, name: str, value: str) -> Sequence[Stored]:
        by_value = self._labels.get(name)
        if by_value is None:
            by_value = self._labels[name] = {}
            for stored in self._objects.values():
                if (has := stored.labels.get(name)) is not None:
                    by_value.setdefault(has, set()).add(stored.key)
            if len(self._labels) > INDEXED_LABELS:
                del self._labels[next(iter(self._labels))]
        found = sorted(key for key in by_value.get(value, ()) if key.startswith(prefix))
        return [self._objects[key] for key in found]

    def _index(self, change: Change) -> None:
        """Keep the indexes of labels true. There are none until somebody selects by one."""
        for name, by_value in self._labels.items():
            if change.before is not None and (had := change.before.labels.get(name)) is not None:
                by_value[had].discard(change.after.key)
            if change.kind is not ChangeKind.DELETED and (has := change.after.labels.get(name)) is not None:
                by_value.setdefault(has, set()).add(change.after.key)

    def _interested(self, key: bytes) -> list[Follower]:
        """Followers of the whole shelf, of the key's namespace and of the key itself."""
        if not self._followers:
            return []
        found = list(self._followers.get(self.prefix, ()))
        slash = key.rfind(b"/") + 1
        if slash > len(self.prefix):
            found += self._followers.get(key[:slash], ())
        found += self._followers.get(key, ())
        return found

    def _trim(self, now: float) -> None:
        """Forget half of the history once that half is old enough, or there is too much of it."""
        count = len(self._history)
        if count < 2 * HISTORY_LEAST:
            return
        half = count // 2
        if count > HISTORY_MOST or now - self._history[half].moment > HISTORY_SECONDS:
            self._oldest = self._history[half - 1].revision
            del self._history[:half]


def _revision(change: Change) -> int:
    return change.revision
