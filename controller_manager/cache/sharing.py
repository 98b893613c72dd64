"""Share equal parts of cached objects: the pods of a ReplicaSet have most of their fields in common.

A pod takes 13 kB as a tree of its own, and 5 kB if equal parts are shared, which takes 30 us. A new object changes several
times, so only objects that have not changed for a while are shared.
"""

import asyncio
from typing import Any, Final, Protocol, TypeAlias, cast

from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.controller_manager.client.resources import Key

UNCHANGED_SECONDS: Final = 10.0
"""Seconds without a change after which the parts of an object are shared."""
BATCH: Final = 100
"""Objects that are shared without yielding to the event loop, in some milliseconds."""
MAX_CANDIDATES: Final = 20_000
"""The maximum of parts that were seen once; then they are forgotten."""
MAX_SHARED: Final = 100_000
"""The maximum of parts that were seen more than once; then all are forgotten, and stay shared by the present objects."""
MAX_TEXT: Final = 64
"""The length of a text that is shared."""

_Content: TypeAlias = tuple[Any, ...]
"""The content of a dict or a list as a key: of an inner dict or list, the address; of other values but strings, also
the type, because 1 is equal to True and 1.0. The part that it leads to keeps the inner ones at their addresses.
"""
_CONTAINERS: Final = frozenset({dict, list})
_OUTER: Final = frozenset({"metadata", "spec", "status"})
_UNIQUE: Final = frozenset({"name", "uid", "resourceVersion"})


class Cache(Protocol):
    """The part of an informer that sharing needs."""

    def tree(self, key: Key) -> ReadOnlyTree | None:
        """Return the cached object of a key."""


class Sharing:
    """Shares the parts of the objects in all caches of a process that have not changed for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._parts = SharedParts()
        self._changed: set[tuple[Cache, Key]] = set()
        """The objects that entered a cache, or changed, since the last turn of `run`."""
        self._is_needed = asyncio.Event()

    def note(self, cache: Cache, key: Key) -> None:
        """Note that an object entered a cache, or changed."""
        self._changed.add((cache, key))
        self._is_needed.set()

    async def run(self) -> None:
        """Share parts until cancelled."""
        while True:
            await self._is_needed.wait()
            self._is_needed.clear()
            changed, self._changed = self._changed, set()
            await self._clock.sleep(UNCHANGED_SECONDS)
            for number, (cache, key) in enumerate(changed, 1):
                if (cache, key) not in self._changed and (tree := cache.tree(key)) is not None:
                    self._parts.share(cast("Tree", tree))  # its content stays the same
                if number % BATCH == 0:
                    await yield_to_loop()


class SharedParts:
    """The parts that objects share: dicts, lists, and the texts of the outer fields."""

    def __init__(self) -> None:
        self._candidates: dict[_Content, Any] = {}
        self._shared: dict[_Content, Any] = {}
        self._texts: dict[str, str] = {}

    def share(self, tree: Tree) -> None:
        """Replace parts of an object by equal parts of other objects."""
        for outer in (tree, *tree.values()):
            if type(outer) is dict:
                self._share_fields(outer)
        if len(self._candidates) > MAX_CANDIDATES:
            self._candidates.clear()
        if len(self._texts) > MAX_CANDIDATES:
            self._texts.clear()
        if len(self._shared) > MAX_SHARED:
            self._candidates.clear()
            self._shared.clear()

    def _share_fields(self, outer: Tree) -> None:
        """Share the values of metadata, spec and status. These themselves are different in each object."""
        for name, value in outer.items():
            if type(value) is str:
                if len(value) <= MAX_TEXT and name not in _UNIQUE:
                    outer[name] = self._texts.setdefault(value, value)
            elif type(value) in _CONTAINERS and name not in _OUTER:
                outer[name] = self._part(value)

    def _part(self, value: Any) -> Any:
        """Return the equal part that was seen before, or the value itself."""
        content = self._content(value)
        part = self._shared.get(content)
        if part is not None:
            return part
        part = self._candidates.pop(content, None)
        if part is None:
            self._candidates[content] = value
            return value
        self._shared[content] = part
        return part

    def _content(self, value: Any) -> _Content:
        content: list[Any] = [type(value)]
        for name, item in value.items() if type(value) is dict else enumerate(value):
            content.append(name)
            kind = type(item)
            if kind is str:
                content.append(item)
            elif kind in _CONTAINERS:
                part = value[name] = self._part(item)
                content.append(id(part))
            else:
                content.append((kind, repr(item)))
        return tuple(content)
