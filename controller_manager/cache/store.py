"""What controllers read: objects by key and by index.

`Lister` and `Caches` are the promises to controllers, `Store` keeps them. What is read is shared and must not be changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol

from mockube.controller_manager.client.resources import Key, Resource, T, T_co

Indexer = Callable[[Any], Iterable[str]]
"""The values under which one view is found in an index."""
OnFailure = Callable[[Key, Any, Exception], None]
"""Called with the key and the view of an object for which a function raised."""


class Lister(Protocol[T_co]):
    """The cached objects of one resource, as its views."""

    def get(self, namespace: str, name: str) -> T_co | None: ...

    def all(self) -> Sequence[T_co]: ...

    def in_namespace(self, namespace: str) -> Sequence[T_co]: ...

    def by_index(self, index: str, value: str) -> Sequence[T_co]: ...

    def index_counts(self, index: str) -> Mapping[str, int]:
        """Return each value of an index, and how many views have it."""

    def __len__(self) -> int: ...


class Caches(Protocol):
    """All caches of a process."""

    def of(self, resource: Resource[T]) -> Lister[T]: ...


class Change(NamedTuple):
    """A change of an object in a cache: added (`old` is None), updated, or deleted (`new` is None).

    An object that was deleted and created again may appear as one change: compare the uids. In a resync both are the
    same.
    """

    old: Any | None
    new: Any | None

    @property
    def last_known(self) -> Any:
        """The object as it was last known."""
        return self.old if self.new is None else self.new


class _Index(Generic[T]):
    """An index: views by each of the values that a function returns for them, in the order in which they were added."""

    def __init__(self, function: Callable[[Key, T], Iterable[str]], on_failure: OnFailure) -> None:
        self._function = function
        self._on_failure = on_failure
        self._buckets: dict[str, dict[Key, T]] = {}

    def change(self, key: Key, old: T | None, new: T | None) -> None:
        before = () if old is None else self._values(key, old)
        after = () if new is None else self._values(key, new)
        if before != after:
            for value in set(before).difference(after):
                self._drop(value, key)
        if new is not None:
            for value in after:
                self._buckets.setdefault(value, {})[key] = new

    def _values(self, key: Key, view: T) -> tuple[str, ...]:
        """None for a view that the function cannot read, or for values that cannot be looked up."""
        try:
            return tuple(dict.fromkeys(self._function(key, view)))
        except Exception as error:  # noqa: BLE001 - whatever is in one object, others must be found
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


class Store(Generic[T]):
    """A `Lister`. Each call returns a new list of the shared views."""

    def __init__(self, on_failure: OnFailure = lambda *_: None) -> None:
        """`on_failure` is called for a view that an index cannot take: the index does not find it."""
        self._on_failure = on_failure
        self._views: dict[Key, T] = {}
        self._namespaces = _Index[T](lambda key, _: (key.namespace,), on_failure)
        self._indexes: dict[str, _Index[T]] = {}

    def add_index(self, name: str, function: Indexer) -> None:
        """The same name means the same function: one that is there stays."""
        if name in self._indexes:
            return
        index = self._indexes[name] = _Index[T](lambda _, view: function(view), self._on_failure)
        for key, view in self._views.items():
            index.change(key, None, view)

    def put(self, key: Key, view: T) -> T | None:
        """Answers with the view that was there."""
        old = self._views.get(key)
        self._views[key] = view
        self._change(key, old, view)
        return old

    def remove(self, key: Key) -> T | None:
        old = self._views.pop(key, None)
        if old is not None:
            self._change(key, old, None)
        return old

    def _change(self, key: Key, old: T | None, new: T | None) -> None:
        self._namespaces.change(key, old, new)
        for index in self._indexes.values():
            index.change(key, old, new)

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
