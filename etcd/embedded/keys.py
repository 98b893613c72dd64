"""Keys in byte order, and the intervals that ranges and watches name.

Two sorted lists: the keys that exist now, and the ghosts: keys deleted at the newest revision whose history can still
be read. Reads of the present never step over ghosts, so deletions do not slow them down.
"""

import heapq
from collections.abc import Iterable, Sequence

from sortedcontainers import SortedList

from mockube.etcd.kv import FROM_KEY


class Keys:
    """The sorted keys of one store."""

    __slots__ = ("_ghosts", "_live")

    def __init__(self, live: Iterable[bytes] = ()) -> None:
        self._live: SortedList[bytes] = SortedList(live)
        self._ghosts: SortedList[bytes] = SortedList()

    def add(self, key: bytes, *, was_ghost: bool) -> None:
        self._live.add(key)
        if was_ghost:
            self._ghosts.remove(key)

    def remove(self, key: bytes) -> None:
        self._live.remove(key)
        self._ghosts.add(key)

    def undo_add(self, key: bytes, *, is_ghost: bool) -> None:
        """Take a birth back; the key is a ghost again if it has history."""
        self._live.remove(key)
        if is_ghost:
            self._ghosts.add(key)

    def undo_remove(self, key: bytes) -> None:
        """Take a death back."""
        self._ghosts.remove(key)
        self._live.add(key)

    def forget(self, key: bytes) -> None:
        """Drop a ghost: none of its history can be read any more."""
        self._ghosts.remove(key)

    def count(self, key: bytes, range_end: bytes) -> int:
        """How many keys of [key, range_end) exist now, without looking at them."""
        low, high = _bounds(self._live, key, range_end)
        return max(high - low, 0)

    def live(self, key: bytes, range_end: bytes, limit: int = 0) -> Sequence[bytes]:
        """The keys of [key, range_end) that exist now, the first `limit` of them."""
        low, high = _bounds(self._live, key, range_end)
        if limit and high - low > limit:
            high = low + limit
        return self._live[low:high]

    def with_history(self, key: bytes, range_end: bytes) -> Iterable[bytes]:
        """The keys of [key, range_end) that exist now or have history."""
        low, high = _bounds(self._ghosts, key, range_end)
        if low >= high:
            return self.live(key, range_end)
        return heapq.merge(self.live(key, range_end), self._ghosts[low:high])


def _bounds(keys: "SortedList[bytes]", key: bytes, range_end: bytes) -> tuple[int, int]:
    high = len(keys) if range_end == FROM_KEY else keys.bisect_left(range_end)
    return keys.bisect_left(key), high


def is_empty(key: bytes, range_end: bytes | None) -> bool:
    """Whether no key at all could be in the interval."""
    return range_end is not None and range_end != FROM_KEY and range_end <= key


def holds(key: bytes, range_end: bytes | None, candidate: bytes) -> bool:
    """Whether the candidate is the key, or in [key, range_end)."""
    if range_end is None:
        return candidate == key
    return key <= candidate and (range_end == FROM_KEY or candidate < range_end)
