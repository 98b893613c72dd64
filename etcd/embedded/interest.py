"""Who is interested in a key: intervals, found by a key within the time of a few look-ups.

Kubernetes watches single keys and prefixes, so these two are hashed: a key is looked up whole, and once for each
length of prefix in use. Other intervals are rare and are tried one by one.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Generic, TypeVar

from mockube.etcd.embedded.keys import holds
from mockube.etcd.kv import prefix_end

T = TypeVar("T")


class Interest(Generic[T]):
    """Things by the interval of keys that they want to hear of."""

    __slots__ = ("_count_of_length", "_lengths", "_others", "_prefixes", "_singles")

    def __init__(self) -> None:
        self._singles: dict[bytes, list[T]] = {}
        self._prefixes: dict[bytes, list[T]] = {}
        self._count_of_length: Counter[int] = Counter()  # of the prefixes
        self._lengths: Sequence[int] = ()  # the same, shortest first
        self._others: dict[tuple[bytes, bytes], list[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._singles or self._prefixes or self._others)

    def add(self, key: bytes, range_end: bytes | None, thing: T) -> None:
        if range_end is None:
            self._singles.setdefault(key, []).append(thing)
        elif range_end == prefix_end(key):
            self._prefixes.setdefault(key, []).append(thing)
            self._count(len(key), 1)
        else:
            self._others.setdefault((key, range_end), []).append(thing)

    def remove(self, key: bytes, range_end: bytes | None, thing: T) -> None:
        if range_end is None:
            _take_out(self._singles, key, thing)
        elif range_end == prefix_end(key):
            _take_out(self._prefixes, key, thing)
            self._count(len(key), -1)
        else:
            _take_out(self._others, (key, range_end), thing)

    def at(self, key: bytes, range_end: bytes | None) -> Sequence[T]:
        """What was added for exactly this interval."""
        if range_end is None:
            return self._singles.get(key, ())
        if range_end == prefix_end(key):
            return self._prefixes.get(key, ())
        return self._others.get((key, range_end), ())

    def of(self, key: bytes) -> list[T]:
        """What is interested in a key."""
        found = list(self._singles.get(key, ()))
        for length in self._lengths:
            if length > len(key):
                break
            found += self._prefixes.get(key[:length], ())
        for (start, end), things in self._others.items():
            if holds(start, end, key):
                found += things
        return found

    def _count(self, length: int, change: int) -> None:
        self._count_of_length[length] += change
        if (
            self._count_of_length[length] <= 1
        ):  # it came or went: every other change leaves the lengths as they are
            self._lengths = sorted(+self._count_of_length)


K = TypeVar("K")


def _take_out(table: dict[K, list[T]], key: K, thing: T) -> None:
    things = table[key]
    things.remove(thing)
    if not things:
        del table[key]
