"""What controllers read: the shared caches of the resources that they watch.

These are promises; `runtime.informer` keeps them. What is read is shared and must not be changed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from controller_manager.runtime.resource import Resource, T, T_co

Indexer = Callable[[Any], Iterable[str]]
"""The values under which one view is found in an index."""


class Lister(Protocol[T_co]):
    """The cached objects of one resource, as its views."""

    def get(self, namespace: str, name: str) -> T_co | None: ...

    def all(self) -> Sequence[T_co]: ...

    def in_namespace(self, namespace: str) -> Sequence[T_co]: ...

    def by_index(self, index: str, value: str) -> Sequence[T_co]: ...


class Caches(Protocol):
    """All caches of a process."""

    def of(self, resource: Resource[T]) -> Lister[T]: ...


class Change(NamedTuple):
    """One step of an object in a cache: it came (`old` is None), changed, or went (`new` is None).

    An object that was deleted and made again may appear as one change: compare the uids. In a resync both are the same.
    """

    old: Any | None
    new: Any | None

    @property
    def latest(self) -> Any:
        """The object as it was last known."""
        return self.old if self.new is None else self.new
