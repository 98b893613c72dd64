"""The present and past versions of all keys.

The versions of a key that was put at 2, put at 5, deleted at 7 and put at 9:

    current[key]   the version of 9, because the key exists now
    past[key]      the versions of 2 and 5 and the tombstone of 7, oldest first

Trimmed at 6, past = [5, 7]: a read at 6 returns the version of 5. Trimmed at 7, past is empty: the key was absent at
7.

Past versions are seldom read: their values are compressed, each with the value that replaced it as the dictionary.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import force_setattr
from sortedcontainers import SortedList

from mockube.etcd import compression
from mockube.etcd.kv import FROM_KEY, Event, KeyValue, LeaseId, Revision

FIRST_KEY = b"\x00"
"""The smallest key."""


class PackedKeyValue(KeyValue, frozen=True, kw_only=True, gc=False):
    """A past version whose value is compressed."""

    size: int
    """Bytes of the uncompressed value."""
    newer: KeyValue | None
    """The next version, whose value is the dictionary; None if the value is compressed alone."""


class Versions:
    """The keys of one store with their histories. It has no transactions: callers pass the revisions."""

    __slots__ = ("_current", "_keys", "_past", "past_bytes", "size")

    def __init__(self, kvs: Iterable[KeyValue] = ()) -> None:
        """Begin with existing keys, in byte order, and no history."""
        self._current = {kv.key: kv for kv in kvs}
        self._past: dict[bytes, list[KeyValue]] = {}
        self._keys = SortedKeys(self._current)
        self.size = sum(map(_weight, self._current.values()))
        """The size of the keys and values of every version in bytes."""
        self.past_bytes = 0
        """The memory that past versions take: their values, compressed ones as such, and the records around them."""

    # --- reading

    def get(self, key: bytes) -> KeyValue | None:
        """Return the present version of a key."""
        return self._current.get(key)

    def at(self, key: bytes, revision: Revision) -> KeyValue | None:
        """Return the version of a key at a revision that is not trimmed."""
        kv = self._packed_at(key, revision)
        return None if kv is None else unpack(kv)

    def _packed_at(self, key: bytes, revision: Revision) -> KeyValue | None:
        """Return the version of a key at a revision, as it is kept."""
        kv = self._current.get(key)
        if kv is not None and kv.mod_revision <= revision:
            return kv
        versions = self._past.get(key)
        if versions is None:
            return None
        after = bisect_right(versions, revision, key=_mod_revision)
        kv = versions[after - 1] if after else None
        return kv if kv is not None and kv.version else None

    def existing(self) -> Iterable[KeyValue]:
        """Yield the present versions of all keys, in no order."""
        return self._current.values()

    def walk(self, revision: Revision) -> Iterator[KeyValue]:
        """Yield the versions of all keys at a revision; changes during the iteration have no effect on it."""
        for key in self._keys.with_history(FIRST_KEY, FROM_KEY):
            kv = self.at(key, revision)
            if kv is not None:
                yield kv

    def count(self, key: bytes, range_end: bytes) -> int:
        """Return the number of existing keys in [key, range_end)."""
        return self._keys.count(key, range_end)

    def keys(self, key: bytes, range_end: bytes) -> Sequence[bytes]:
        """Return the existing keys in [key, range_end)."""
        return self._keys.live(key, range_end)

    def range(self, key: bytes, range_end: bytes, limit: int) -> Sequence[KeyValue]:
        """Return the present versions of the first `limit` keys of [key, range_end), of all of them for 0."""
        current = self._current
        return [current[k] for k in self._keys.live(key, range_end, limit)]

    def range_at(
        self, key: bytes, range_end: bytes, revision: Revision, limit: int
    ) -> tuple[Sequence[KeyValue], int]:
        """Return the versions of the first `limit` keys of [key, range_end) at a revision that is not trimmed, of all of them for
        0, and the number of all. Only the versions that are returned are decompressed.
        """
        at = self._packed_at
        kvs = [kv for k in self._keys.with_history(key, range_end) if (kv := at(k, revision)) is not None]
        return [*map(unpack, kvs[:limit] if limit else kvs)], len(kvs)

    # --- changing

    def put(
        self, key: bytes, value: bytes, lease: LeaseId, revision: Revision
    ) -> tuple[KeyValue, KeyValue | None]:
        """Add a version of a key; return it and the previous one."""
        previous = self._current.get(key)
        if previous is None:
            created, version = revision, 1
            self._keys.add(key, was_ghost=key in self._past)
        else:
            created, version = previous.create_revision, previous.version + 1
            key = previous.key  # the versions of a key share its bytes
            self._retire(previous)
        kv = KeyValue(
            key=key, value=value, create_revision=created, mod_revision=revision, version=version, lease=lease
        )
        self._current[key] = kv
        self.size += len(key) + len(value)
        return kv, previous

    def undo_put(self, key: bytes) -> None:
        """Undo the newest version of a key."""
        kv = self._current.pop(key)
        self.size -= _weight(kv)
        if kv.version == 1:
            self._keys.undo_add(key, is_ghost=key in self._past)
        else:
            self._current[key] = self._restore_last(key)

    def delete(self, key: bytes, revision: Revision) -> tuple[KeyValue, KeyValue]:
        """Delete an existing key; return its tombstone and its last version."""
        previous = self._current.pop(key)
        tombstone = KeyValue(key=key, value=b"", create_revision=0, mod_revision=revision, version=0)
        self._retire(previous)
        self._past[key].append(tombstone)
        self.past_bytes += _VERSION_BYTES
        self._keys.remove(key)
        self.size += len(key)
        return tombstone, previous

    def undo_delete(self, key: bytes) -> None:
        """Undo the deletion of a key."""
        tombstone = self._past[key].pop()
        self.size -= _weight(tombstone)
        self.past_bytes -= _taken_bytes(tombstone)
        self._current[key] = self._restore_last(key)
        self._keys.undo_remove(key)

    def pack(self, kv: KeyValue, newer: KeyValue) -> PackedKeyValue:
        """Compress the value of a past version, which `newer` replaced; return the compressed version."""
        packed = pack(kv, newer)
        versions = self._past.get(kv.key, [])
        index = bisect_left(versions, kv.mod_revision, key=_mod_revision)
        if index < len(versions) and versions[index] is kv:
            versions[index] = packed
            self.past_bytes += _taken_bytes(packed) - _taken_bytes(kv)
            older = versions[index - 1] if index else None
            if type(older) is PackedKeyValue and older.newer is kv:
                force_setattr(older, "newer", packed)  # otherwise it would keep the uncompressed value
        return packed

    def trim(self, key: bytes, revision: Revision) -> None:
        """Drop the versions of a key that no read at `revision` or later can see."""
        versions = self._past.get(key)
        if versions is None:
            return
        drop = bisect_right(versions, revision, key=_mod_revision)
        current = self._current.get(key)
        if drop and versions[drop - 1].version and (current is None or current.mod_revision > revision):
            drop -= 1  # the key reads as this version at `revision`
        self.size -= sum(map(_weight, versions[:drop]))
        self.past_bytes -= sum(map(_taken_bytes, versions[:drop]))
        if drop < len(versions):
            del versions[:drop]
            return
        del self._past[key]
        if current is None:
            self._keys.forget(key)

    def _retire(self, kv: KeyValue) -> None:
        self.past_bytes += _VERSION_BYTES + len(kv.value)
        versions = self._past.get(kv.key)
        if versions is None:
            self._past[kv.key] = [kv]
        else:
            versions.append(kv)

    def _restore_last(self, key: bytes) -> KeyValue:
        versions = self._past[key]
        kv = versions.pop()
        self.past_bytes -= _taken_bytes(kv)
        if not versions:
            del self._past[key]
        return unpack(kv)


def _mod_revision(kv: KeyValue) -> Revision:
    return kv.mod_revision


def _weight(kv: KeyValue) -> int:
    return len(kv.key) + _value_size(kv)


_VERSION_BYTES = 250
"""The memory of a past version besides its value: its record, the numbers and the places in lists, and the event that replaced it."""


def _taken_bytes(kv: KeyValue) -> int:
    return _VERSION_BYTES + len(kv.value)


def taken_by(event: Event) -> int:
    """Return the memory that an event and the version that it replaced take."""
    return _VERSION_BYTES if event.previous is None else _taken_bytes(event.previous)


def _value_size(kv: KeyValue) -> int:
    return kv.size if type(kv) is PackedKeyValue else len(kv.value)


class SortedKeys:
    """The sorted keys of one store, in two lists: those that exist now, and the ghosts.

    A ghost is a key that is deleted at the newest revision and whose history can still be read. Reads of the present do
    not iterate over ghosts, so deletions do not slow them down.
    """

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
        """Undo the creation of a key, which is a ghost again if it has history."""
        self._live.remove(key)
        if is_ghost:
            self._ghosts.add(key)

    def undo_remove(self, key: bytes) -> None:
        """Undo the deletion of a key."""
        self._ghosts.remove(key)
        self._live.add(key)

    def forget(self, key: bytes) -> None:
        """Drop a ghost: none of its history can be read any more."""
        self._ghosts.remove(key)

    def count(self, key: bytes, range_end: bytes) -> int:
        """Return the number of existing keys in [key, range_end), without iterating over them."""
        low, high = _bounds(self._live, key, range_end)
        return max(high - low, 0)

    def live(self, key: bytes, range_end: bytes, limit: int = 0) -> Sequence[bytes]:
        """Return the existing keys in [key, range_end), the first `limit` of them."""
        low, high = _bounds(self._live, key, range_end)
        if limit and high - low > limit:
            high = low + limit
        return self._live[low:high]

    def with_history(self, key: bytes, range_end: bytes) -> Iterable[bytes]:
        """Return the keys of [key, range_end) that exist or have history."""
        low, high = _bounds(self._ghosts, key, range_end)
        if low >= high:
            return self.live(key, range_end)
        return heapq.merge(self.live(key, range_end), self._ghosts[low:high])


def _bounds(keys: "SortedList[bytes]", key: bytes, range_end: bytes) -> tuple[int, int]:
    high = len(keys) if range_end == FROM_KEY else keys.bisect_left(range_end)
    return keys.bisect_left(key), high


def is_empty(key: bytes, range_end: bytes | None) -> bool:
    """Return whether the interval is empty by its bounds."""
    return range_end is not None and range_end != FROM_KEY and range_end <= key


def covers(key: bytes, range_end: bytes | None, candidate: bytes) -> bool:
    """Return whether a key or an interval [key, range_end) covers the candidate."""
    if range_end is None:
        return candidate == key
    return key <= candidate and (range_end == FROM_KEY or candidate < range_end)


def pack(kv: KeyValue, newer: KeyValue) -> PackedKeyValue:
    """Compress a value with the next version as the dictionary, but for one version in each chain."""
    is_alone = kv.version % compression.MAX_CHAIN == 0 or _value_size(newer) > compression.MAX_DICTIONARY
    dictionary = None if is_alone else newer
    return PackedKeyValue(
        key=kv.key,
        value=compression.compress(kv.value, _dictionary(dictionary)),
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        lease=kv.lease,
        size=len(kv.value),
        newer=dictionary,
    )


def unpack(kv: KeyValue) -> KeyValue:
    """Return a version with its value as it was put."""
    if type(kv) is not PackedKeyValue:
        return kv
    return KeyValue(
        key=kv.key,
        value=compression.decompress(kv.value, _dictionary(kv.newer)),
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        lease=kv.lease,
    )


def _dictionary(newer: KeyValue | None) -> bytes:
    return b"" if newer is None else unpack(newer).value


def is_worth_packing(kv: KeyValue) -> bool:
    return type(kv) is not PackedKeyValue and compression.is_compressible(kv.value)


def packable_bytes(event: Event) -> int:
    """Return the size of the value that a change replaces; 0 if it is not worth compression."""
    replaced = event.previous
    return len(replaced.value) if replaced is not None and is_worth_packing(replaced) else 0


def unpack_event(event: Event) -> Event:
    previous = None if event.previous is None else unpack(event.previous)
    return Event(kind=event.kind, kv=unpack(event.kv), previous=previous)
