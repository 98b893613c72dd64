"""The views of one resource's objects, and what finds them: by name, by namespace, by index. Knows no server."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic

from controller_manager.runtime.caches import Indexer
from controller_manager.runtime.resource import Key, T


class _Index(Generic[T]):
    """Views by each of the values that a function finds in them, in the order in which they came."""

    def __init__(self, values: Callable[[Key, T], Iterable[str]]) -> None:
        self._values = values
        self._buckets: dict[str, dict[Key, T]] = {}

    def change(self, key: Key, old: T | None, new: T | None) -> None:
        before = () if old is None else tuple(self._values(key, old))
        after = () if new is None else tuple(self._values(key, new))
        if before != after:
            for value in set(before).difference(after):
                self._drop(value, key)
        if new is not None:
            for value in after:
                self._buckets.setdefault(value, {})[key] = new

    def _drop(self, value: str, key: Key) -> None:
        bucket = self._buckets[value]
        del bucket[key]
        if not bucket:
            del self._buckets[value]

    def find(self, value: str) -> Sequence[T]:
        return list(self._buckets.get(value, {}).values())


class Store(Generic[T]):
    """A `Lister`. Whoever asks gets a list of his own, of views that everybody shares."""

    def __init__(self) -> None:
        self._views: dict[Key, T] = {}
        self._namespaces = _Index[T](lambda key, _: (key.namespace,))
        self._indexes: dict[str, _Index[T]] = {}

    def add_index(self, name: str, function: Indexer) -> None:
        """The same name means the same function: one that is there stays."""
        if name in self._indexes:
            return
        index = self._indexes[name] = _Index[T](lambda _, view: function(view))
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
