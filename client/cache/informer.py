"""Informers: cache the objects of a resource, and notify handlers of each change. `Informers` shares them.

An informer also has the revision of the last change, so that a caller can wait for a revision. In tests a mutation
detector finds changes of shared objects.

An object for which a view, an index or a handler fails affects no other object: it is logged, counted, and skipped.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Generic, NamedTuple

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.randomness import Random, fraction
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import rows
from mockube.client.metrics.informers import InformerMetrics, InformerStats
from mockube.client.resources import Key, Resource, T
from mockube.client.verbs import AnyResource, Client, Parsed
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.supervision import start, start_in

from .reflector import Reflector
from .revisions import RevisionTracker
from .sharing import SharedParts
from .store import Change, Classifier, Indexer, Lister, OnFailure, Store

LOG: Final = logging.getLogger(__name__)

_BATCH: Final = 100
"""Objects of a list that enter a cache without yielding to the event loop, in some milliseconds."""


class _Cached(NamedTuple):
    """A cached object, and its JSON when it was cached."""

    tree: ReadOnlyTree
    original: bytes


class CacheMutated(AssertionError):
    """A handler changed a shared object of the cache."""


class MutationDetector:
    """Compares cached objects with copies from when they were cached, as client-go's cache mutation detector."""

    def __init__(self) -> None:
        self._cached: list[_Cached] = []

    def add(self, tree: ReadOnlyTree) -> None:
        self._cached.append(_Cached(tree, orjson.dumps(tree)))

    def check(self) -> None:
        changed = [each for each in self._cached if orjson.dumps(each.tree) != each.original]
        if changed:
            raise CacheMutated("\n".join(map(_mutation_message, changed)))


def _mutation_message(cached: _Cached) -> str:
    name = f"{meta.kind(cached.tree)} {meta.namespace(cached.tree)}/{meta.name(cached.tree)}"
    return f"{name} was {cached.original.decode()} and is now {orjson.dumps(cached.tree).decode()}"


Handler = Callable[[Change], None]
"""A function that is called synchronously with each change of the cache, so it must be fast. An object for which it
raises counts as deleted for this handler, until it handles a later version.
"""


class _Listener:
    """A handler, and the keys of the objects for which it failed."""

    def __init__(self, handler: Handler, on_failure: OnFailure) -> None:
        self._handler = handler
        self._on_failure = on_failure
        self._failed: set[Key] = set()

    def notify(self, key: Key, change: Change) -> None:
        if key in self._failed:  # the object counts as deleted for the handler
            self._failed.discard(key)
            if change.new is None:
                return
            change = Change(None, change.new)
        try:
            self._handler(change)
        except Exception as error:  # noqa: BLE001 - a malformed object must not affect others
            self._on_failure(key, change.last_known, error)
            if change.new is not None:
                self._failed.add(key)
                if change.old is not None:
                    with suppress(Exception):  # the failure is reported already
                        self._handler(Change(change.old, None))


class HandlerScope:
    """The handlers that are added in a block, and by the tasks that begin in it: they are removed together.

    What runs only for a time needs it, because informers outlive it.
    """

    def __init__(self) -> None:
        self._removals: list[Callable[[], None]] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        token = _SCOPE.set(self)
        try:
            yield
        finally:
            _SCOPE.reset(token)

    def note(self, remove: Callable[[], None]) -> None:
        self._removals.append(remove)

    def remove_handlers(self) -> None:
        for remove in self._removals:
            remove()
        self._removals.clear()


_SCOPE: ContextVar[HandlerScope | None] = ContextVar("handler_scope", default=None)


class Informer(Generic[T]):
    """The cache of one resource: a store of views with indexes, and handlers of changes. The `Sink` of a reflector."""

    def __init__(
        self,
        resource: Resource[T],
        *,
        clock: Clock,
        counts: InformerStats | None = None,
        detector: MutationDetector | None = None,
        parts: SharedParts | None = None,
    ) -> None:
        self.resource = resource
        self._store = Store[T](self._report)
        self._listeners: list[_Listener] = []
        self._watch_handlers: list[Callable[[], None]] = []
        self._reported_versions: dict[Key, str] = {}
        """The last version of each object that was logged as unusable."""
        self._detector = detector
        self._parts = parts or SharedParts()
        self._synced = asyncio.Event()
        self._counts = counts or InformerStats()
        self._tracker = RevisionTracker(clock.real, self._counts)

    @property
    def lister(self) -> Lister[T]:
        return self._store

    @property
    def revision(self) -> int:
        """The revision that the cache has reached: it contains all changes up to it."""
        return self._tracker.revision

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until the cache has all objects of the first list."""
        await self._synced.wait()

    def wait_for_revision(self, revision: int) -> Awaitable[None]:
        """Return a future that is done when the cache reaches the revision, or the server has another history."""
        return self._tracker.wait_for(revision)

    def add_index(self, name: str, function: Indexer) -> None:
        self._store.add_index(name, function)

    def add_tally(self, name: str, classify: Classifier) -> None:
        self._store.add_tally(name, classify)

    def add_handler(self, handler: Handler) -> None:
        """Call the handler for every cached object now, and then for each change."""
        listener = _Listener(handler, self._report)
        self._listeners.append(listener)
        if (scope := _SCOPE.get()) is not None:
            scope.note(partial(self._listeners.remove, listener))
        for key, view in self._store.items():
            listener.notify(key, Change(None, view))

    def on_watch(self, handler: Callable[[], None]) -> None:
        """Call the handler whenever a watch of the resource has begun."""
        self._watch_handlers.append(handler)

    def resync(self) -> None:
        """Call the handlers for every cached object again, as an update with equal old and new views."""
        for key, view in self._store.items():
            self._notify(key, Change(view, view))

    # --- the sink of a reflector

    def transform(self, tree: Parsed) -> Parsed:
        if not isinstance(tree.get("metadata"), dict):
            return tree  # an item that is no object
        # No controller reads managed fields, which make up half of an object.
        tree["metadata"].pop("managedFields", None)
        return self._parts.share(tree)

    async def replace(self, trees: Sequence[Parsed], revision: int) -> None:
        new_trees = self._by_key(trees)
        self._reported_versions = {
            key: version for key, version in self._reported_versions.items() if key in new_trees
        }
        deleted = [key for key in self._store if key not in new_trees]
        for number, key in enumerate((*deleted, *new_trees), 1):
            if number % _BATCH == 0:
                await yield_to_loop()  # the handlers of many objects must not delay the renewal of the lease
            tree = new_trees.get(key)
            if tree is None:
                self._remove_view(key)
            elif not self._has_version(key, tree):
                self._put_view(key, tree)
        self.reach(revision)
        self._synced.set()

    def put(self, tree: Parsed) -> None:
        self._put_view(Key.of(tree), tree)
        self.reach(int(meta.resource_version(tree)))

    def remove(self, tree: Parsed) -> None:
        key = Key.of(tree)
        self._remove_view(key)
        self._reported_versions.pop(key, None)
        self.reach(int(meta.resource_version(tree)))

    def note_watch(self) -> None:
        for handler in self._watch_handlers:
            handler()

    def reach(self, revision: int) -> None:
        self._tracker.reach(revision)
        self._counts.objects.value = len(self._store)

    def _by_key(self, trees: Sequence[Parsed]) -> dict[Key, Parsed]:
        trees_by_key = {}
        for tree in trees:
            try:
                trees_by_key[_key_of_item(tree)] = tree
            except Exception as error:  # noqa: BLE001 - an item without a name is no object
                self._log_once(Key("", ""), "", error)
        return trees_by_key

    def _has_version(self, key: Key, tree: Parsed) -> bool:
        view = self._store.get(*key)
        if view is None:
            return False
        cached = self.resource.tree(view)
        # In another history, another object may have the same version.
        return (meta.resource_version(cached), meta.uid(cached)) == (
            meta.resource_version(tree),
            meta.uid(tree),
        )

    def _put_view(self, key: Key, tree: Parsed) -> None:
        try:
            old = self._store.get(*key)
            if old is not None:
                _keep_identity(tree["metadata"], self.resource.tree(old)["metadata"])
            if self._detector is not None:
                self._detector.add(tree)
            view = self.resource.view(tree)
        except Exception as error:  # noqa: BLE001 - a malformed object is treated as absent
            self._remove_view(key)
            self._log_once(key, meta.resource_version(tree), error)
            return
        self._notify(key, Change(self._store.put(key, view), view))

    def _remove_view(self, key: Key) -> None:
        old = self._store.remove(key)
        if old is not None:
            self._notify(key, Change(old, None))

    def _notify(self, key: Key, change: Change) -> None:
        for listener in self._listeners:
            listener.notify(key, change)

    # --- objects that cannot be processed

    def _report(self, key: Key, view: T, error: Exception) -> None:
        self._log_once(key, meta.resource_version(self.resource.tree(view)), error)

    def _log_once(self, key: Key, version: str, error: Exception) -> None:
        """Log and count an object once for each of its versions."""
        if self._reported_versions.get(key) == version:
            return
        self._reported_versions[key] = version
        self._counts.unusable.value += 1
        LOG.error("%s %s cannot be processed and is skipped", self.resource, key, exc_info=error)


def _keep_identity(metadata: Parsed, old: ReadOnlyTree) -> None:
    """Keep the texts of the old version, which are in the indexes and in what controllers know of the object."""
    for name in ("name", "uid"):
        if metadata.get(name) == old.get(name):
            metadata[name] = old.get(name)


def _key_of_item(tree: Parsed) -> Key:
    """Return the key of an item of a list; raise an error if the item is no object."""
    if not isinstance(tree["metadata"], dict):
        raise TypeError(f"metadata is {type(tree['metadata']).__name__}")
    return Key.of(tree)


# --- all informers of a process


class InformerSettings(Struct, frozen=True, kw_only=True):
    clock: Clock
    random: Random
    metrics: InformerMetrics = field(default_factory=lambda: InformerMetrics(MetricsRegistry()))
    min_resync_period: float | None = None
    """Seconds between resyncs, randomized up to twice that for each informer."""
    detector: MutationDetector | None = None
    gates: FeatureGates = field(default_factory=FeatureGates)


class Informers:
    """The shared informers of a process, one for each resource; client-go's SharedInformerFactory."""

    def __init__(
        self, client: Client, settings: InformerSettings, rows_of_packs: Iterable[AnyResource] = ()
    ) -> None:
        """`rows_of_packs` are those that controllers need. Who watches all kinds watches others as discovery finds them."""
        self._client = client
        self._settings = settings
        self._informers: dict[AnyResource, Informer[Any]] = {}
        self._known_rows: dict[GroupResource, AnyResource] = {
            row.group_resource: row for row in (*rows(), *rows_of_packs)
        }
        self._rows = dict(self._known_rows)
        """The rows that are watched: known ones, and those that discovery found."""
        self._parts = SharedParts()
        self._tasks: dict[AnyResource, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self.caches = _Caches(self, settings.gates)

    def of(self, resource: Resource[T]) -> Informer[T]:
        """Return the informer of a resource. A new one starts at once if the others run."""
        informer = self._informers.get(resource)
        if informer is None:
            informer = self._informers[resource] = Informer(
                resource,
                clock=self._settings.clock,
                counts=self._settings.metrics.of(_name(resource)),
                detector=self._settings.detector,
                parts=self._parts,
            )
            self._start(informer)
        return informer

    def row(self, resource: AnyResource) -> AnyResource:
        """Return the row for a discovered resource: an existing one, so that no resource is watched twice.

        A row that discovery found in another version before is replaced.
        """
        name = resource.group_resource
        row = self._rows.setdefault(name, resource)
        if name not in self._known_rows and row.api_version != resource.api_version:
            self.stop(row)
            row = self._rows[name] = resource
        return row

    def find(self, row: AnyResource) -> Informer[Any] | None:
        """Return the informer of a discovered row; None if it was stopped."""
        return self.of(row) if self._rows.get(row.group_resource) is row else None

    def stop(self, row: AnyResource) -> None:
        """Stop the informer of a row that discovery no longer finds, if it runs. Known rows may have other watchers."""
        name = row.group_resource
        if name not in self._known_rows and self._rows.get(name) is row:
            del self._rows[name]
            if row in self._informers:
                self.forget(row)

    def forget(self, resource: AnyResource) -> None:
        """Stop the informer of a resource that is no longer served, such as one of a deleted definition."""
        del self._informers[resource]
        if self._rows.get(resource.group_resource) is resource:
            del self._rows[resource.group_resource]
        self._settings.metrics.forget(_name(resource))
        task = self._tasks.pop(resource, None)
        if task is not None:
            task.cancel()

    async def list_uncached(self, resource: AnyResource, namespace: str) -> Sequence[ReadOnlyTree]:
        """Return the metadata of the objects in a namespace as the server lists them now, not from the caches.

        It uses the client of the caches: a controller's service account may write resources that it may not list.
        """
        object_list = await self._client.list(replace(resource, metadata_only=True), namespace)
        return object_list.items

    async def wait_synced(self) -> None:
        for informer in list(self._informers.values()):  # a copy: one may be added while this waits
            await informer.wait_synced()

    async def run(self) -> None:
        """Run all informers until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for informer in self._informers.values():
                self._start(informer)
            await asyncio.Event().wait()  # further informers may start

    def _start(self, informer: Informer[Any]) -> None:
        if self._group is not None:
            resource = informer.resource
            self._tasks[resource] = start(
                f"informer of {resource}", self._follow(informer), group=self._group
            )

    async def _follow(self, informer: Informer[Any]) -> None:
        settings = self._settings
        reflector = Reflector(
            self._client,
            informer.resource,
            informer,
            settings.metrics.of(_name(informer.resource)),
            clock=settings.clock,
            random=settings.random.stream(f"reflector/{_name(informer.resource)}"),
        )
        async with asyncio.TaskGroup() as group:
            name = _name(informer.resource)
            start_in(group, f"reflector of {name}", reflector.run(), endless=True)
            if settings.min_resync_period is not None:
                resync = self._resync(informer, settings.min_resync_period)
                start_in(group, f"resync of {name}", resync, endless=True)

    async def _resync(self, informer: Informer[Any], period: float) -> None:
        random = self._settings.random.stream(f"resync/{_name(informer.resource)}")
        while True:
            # One to two periods, as kube-controller-manager's ResyncPeriod: not all informers resync at once.
            await self._settings.clock.routine.sleep(period * (1.0 + fraction(random)))
            informer.resync()


class _Caches:
    """`Caches` over the listers of all informers."""

    def __init__(self, informers: Informers, gates: FeatureGates) -> None:
        self._informers = informers
        self.gates = gates

    def of(self, resource: Resource[T]) -> Lister[T]:
        return self._informers.of(resource).lister


def _name(resource: AnyResource) -> str:
    """Return the name in metrics; an informer of metadata only has a cache, and so a name, of its own."""
    return f"{resource}/metadata" if resource.metadata_only else str(resource)
