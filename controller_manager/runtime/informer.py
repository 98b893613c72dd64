"""The cache of one resource, and those who are told of its changes.

Knows no connection: a reflector tells it what it sees. A relist becomes the differences that it makes, so that nobody
who is told can tell it from a watch. What lies in the cache, handlers included, is shared and never changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic

from apimachinery import meta
from apimachinery.clock import Clock
from controller_manager.runtime.caches import Change, Indexer, Lister
from controller_manager.runtime.client import Parsed
from controller_manager.runtime.informer_metrics import InformerCounts
from controller_manager.runtime.mutation import MutationDetector
from controller_manager.runtime.progress import Progress
from controller_manager.runtime.resource import Key, Resource, T
from controller_manager.runtime.store import Store

Handler = Callable[[Change], None]
"""Called in the turn of the event that changed the cache, so it must be quick; what it raises ends the process."""


class Informer(Generic[T]):
    def __init__(
        self,
        resource: Resource[T],
        *,
        clock: Clock,
        counts: InformerCounts | None = None,
        detector: MutationDetector | None = None,
    ) -> None:
        self.resource = resource
        self._store = Store[T]()
        self._handlers: list[Handler] = []
        self._detector = detector
        self._synced = asyncio.Event()
        self._counts = counts or InformerCounts()
        self._progress = Progress(clock, self._counts)

    @property
    def lister(self) -> Lister[T]:
        return self._store

    @property
    def revision(self) -> int:
        """How far the cache has come: everything up to it is in, or was."""
        return self._progress.revision

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Until everything is in the cache that was there at the beginning."""
        await self._synced.wait()

    def when_reached(self, revision: int) -> Awaitable[None]:
        """Done once the cache has come that far, or the server has another history."""
        return self._progress.until(revision)

    def add_index(self, name: str, function: Indexer) -> None:
        self._store.add_index(name, function)

    def add_handler(self, handler: Handler) -> None:
        """It is told of everything that is there at once, and then of each change."""
        self._handlers.append(handler)
        for view in self._store.all():
            handler(Change(None, view))

    def resync(self) -> None:
        """Tell of everything once more, as a change that changes nothing."""
        for view in self._store.all():
            self._tell(Change(view, view))

    # --- what a reflector tells

    def replace(self, trees: Sequence[Parsed], revision: int) -> None:
        fresh = {_key(tree): tree for tree in trees}
        for key in [key for key in self._store if key not in fresh]:
            self._drop(key)
        for key, tree in fresh.items():
            if not self._holds(key, tree):
                self._keep(key, tree)
        self.reach(revision)
        self._synced.set()

    def put(self, tree: Parsed) -> None:
        self._keep(_key(tree), tree)
        self.reach(int(meta.resource_version(tree)))

    def remove(self, tree: Parsed) -> None:
        self._drop(_key(tree))
        self.reach(int(meta.resource_version(tree)))

    def reach(self, revision: int) -> None:
        self._progress.reach(revision)
        self._counts.objects = len(self._store)

    def _holds(self, key: Key, tree: Parsed) -> bool:
        view = self._store.get(*key)
        if view is None:
            return False
        held = self.resource.tree(view)
        # Another history may have come to the same version with another object.
        return (meta.resource_version(held), meta.uid(held)) == (meta.resource_version(tree), meta.uid(tree))

    def _keep(self, key: Key, tree: Parsed) -> None:
        tree["metadata"].pop(
            "managedFields", None
        )  # no controller reads them, and they are half of an object
        if self._detector is not None:
            self._detector.keep(tree)
        view = self.resource.view(tree)
        self._tell(Change(self._store.put(key, view), view))

    def _drop(self, key: Key) -> None:
        old = self._store.remove(key)
        if old is not None:
            self._tell(Change(old, None))

    def _tell(self, change: Change) -> None:
        for handler in self._handlers:
            handler(change)


def _key(tree: Parsed) -> Key:
    metadata = tree["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])
