"""Stores of cached objects, by key and by index.

Controllers read through `Lister` and `Caches`; `Store` implements a `Lister`. The objects are shared and must not be
changed.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.resources import Key, Resource, T, T_co

Indexer = Callable[[Any], Iterable[str]]
"""A function that returns the index values of a view."""
Classifier = Callable[[Any], tuple[str, Hashable] | None]
"""A function that returns the group and the class in which a view is counted; None if it is not counted."""
ALL: Final = ""
"""The group of a tally that counts all views together."""
OnFailure = Callable[[Key, Any, Exception], None]
"""A function that is called with the key and the view of an object for which an index or a handler raised."""


class Lister(Protocol[T_co]):
    """The cached objects of one resource, as its views."""

    def get(self, namespace: str, name: str) -> T_co | None: ...

    def all(self) -> Sequence[T_co]: ...

    def in_namespace(self, namespace: str) -> Sequence[T_co]: ...

    def by_index(self, index: str, value: str) -> Sequence[T_co]: ...

    def index_counts(self, index: str) -> Mapping[str, int]:
        """Return each value of an index, and how many views have it."""

    def class_counts(self, tally: str, group: str) -> Mapping[Any, int]:
        """Return each class of a group, and how many views are counted in it. It costs nothing for each view."""

    def __len__(self) -> int: ...


class Caches(Protocol):
    """All caches of a process."""

    @property
    def gates(self) -> FeatureGates:
        """The feature gates of the process, which its controllers read with the objects."""

    def of(self, resource: Resource[T]) -> Lister[T]: ...


class Change(NamedTuple):
    """A change of an object in a cache: added (`old` is None), updated, or deleted (`new` is None).

    An object that was deleted and created again may appear as one update: compare the uids. In a resync `old` and `new`
    are the same.
    """

    old: Any | None
    new: Any | None

    @property
    def last_known(self) -> Any:
        """The new view, or the last view of a deleted object."""
        return self.old if self.new is None else self.new


class _Index(Generic[T]):
    """An index: the views by index value, in the order in which they were added."""

    def __init__(self, function: Callable[[Key, T], Iterable[str]], on_failure: OnFailure) -> None:
        self._function = function
        self._on_failure = on_failure
        self._buckets: dict[str, dict[Key, T]] = {}

    def update(self, key: Key, old: T | None, new: T | None) -> None:
        before = () if old is None else self._values(key, old)
        after = () if new is None else self._values(key, new)
        if before != after:
            for value in set(before).difference(after):
                self._drop(value, key)
        if new is not None:
            for value in after:
                self._buckets.setdefault(value, {})[key] = new

    def _values(self, key: Key, view: T) -> tuple[str, ...]:
        """Return the index values of a view; none if the function raises, or if a value cannot be hashed."""
        try:
            return tuple(dict.fromkeys(self._function(key, view)))
        except Exception as error:  # noqa: BLE001 - a malformed object must not affect others
            self._on_failure(key, view, error)
            return ()

    def _drop(self, value: str, key: Key) -> None:
        bucket = self._buckets[value]
        del bucket[key]
        if not bucket:
            del self._buckets[value]

    def counts(self) -> Mapping[str, int]:
        return {value: len(bucket) for value, bucket in self._buckets.items()}

    def find(self, value: str) -> Sequence[T]:
        return list(self._buckets.get(value, {}).values())


class _Tally(Generic[T]):
    """The numbers of views by group and class."""

    def __init__(self, classify: Classifier, on_failure: OnFailure) -> None:
        self._classify = classify
        self._on_failure = on_failure
        self._groups: dict[str, dict[Hashable, int]] = {}

    def update(self, key: Key, old: T | None, new: T | None) -> None:
        before, after = self._class_of(key, old), self._class_of(key, new)
        if before != after:
            self._add(before, -1)
            self._add(after, 1)

    def _class_of(self, key: Key, view: T | None) -> tuple[str, Hashable] | None:
        """Return the group and the class of a view; None if it is not counted, or if the function raises."""
        try:
            return None if view is None else self._classify(view)
        except Exception as error:  # noqa: BLE001 - a malformed object must not affect others
            self._on_failure(key, view, error)
            return None

    def _add(self, place: tuple[str, Hashable] | None, difference: int) -> None:
        if place is None:
            return
        group, class_ = place
        counts = self._groups.setdefault(group, {})
        counts[class_] = counts.get(class_, 0) + difference
        if not counts[class_]:
            del counts[class_]
        if not counts:
            del self._groups[group]

    def counts(self, group: str) -> Mapping[Hashable, int]:
        return dict(self._groups.get(group, {}))


class Store(Generic[T]):
    """The views of one resource, by key and by index. Each method of `Lister` returns a new list."""

    def __init__(self, on_failure: OnFailure = lambda *_: None) -> None:
        """Create an empty store. `on_failure` is called for a view for which an index function raises."""
        self._on_failure = on_failure
        self._views: dict[Key, T] = {}
        self._namespaces = _Index[T](lambda key, _: (key.namespace,), on_failure)
        self._indexes: dict[str, _Index[T]] = {}
        self._tallies: dict[str, _Tally[T]] = {}

    def add_index(self, name: str, function: Indexer) -> None:
        """Add an index, unless there is one with this name: a name stands for one function everywhere."""
        if name in self._indexes:
            return
        index = self._indexes[name] = _Index[T](lambda _, view: function(view), self._on_failure)
        for key, view in self._views.items():
            index.update(key, None, view)

    def add_tally(self, name: str, classify: Classifier) -> None:
        """Add a tally, unless there is one with this name: a name stands for one function everywhere."""
        if name in self._tallies:
            return
        tally = self._tallies[name] = _Tally[T](classify, self._on_failure)
        for key, view in self._views.items():
            tally.update(key, None, view)

    def put(self, key: Key, view: T) -> T | None:
        """Set the view of an object, and return the previous one."""
        old = self._views.get(key)
        self._views[key] = view
        self._update_indexes(key, old, view)
        return old

    def remove(self, key: Key) -> T | None:
        old = self._views.pop(key, None)
        if old is not None:
            self._update_indexes(key, old, None)
        return old

    def _update_indexes(self, key: Key, old: T | None, new: T | None) -> None:
        self._namespaces.update(key, old, new)
        for index in self._indexes.values():
            index.update(key, old, new)
        for tally in self._tallies.values():
            tally.update(key, old, new)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._views)

    def items(self) -> Sequence[tuple[Key, T]]:
        return list(self._views.items())

    def __len__(self) -> int:
        return len(self._views)

    # --- Lister

    def get(self, namespace: str, name: str) -> T | None:
        return self._views.get(Key(namespace, name))

    def all(self) -> Sequence[T]:
        return list(self._views.values())

    def in_namespace(self, namespace: str) -> Sequence[T]:
        return self._namespaces.find(namespace)

    def by_index(self, index: str, value: str) -> Sequence[T]:
        return self._indexes[index].find(value)

    def index_counts(self, index: str) -> Mapping[str, int]:
        return self._indexes[index].counts()

    def class_counts(self, tally: str, group: str) -> Mapping[Any, int]:
        return self._tallies[tally].counts(group)
