"""A controller's writes for each of its keys that its caches do not show yet.

A plan made from caches that lack its predecessor's creations would create them once more. So the revision of the last
write of each resource is kept with the key, and the key waits until the informers have reached it. A deletion whose
response has no revision is waited for by the uid of the deleted object.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import AnyResource, ObjectRef, Write

EXPIRY_SECONDS: Final = 300.0
"""After which a write is no longer waited for; upstream's, of expectations."""


class Source(Protocol):
    """The part of an informer that is used here."""

    @property
    def revision(self) -> int: ...

    @property
    def lister(self) -> Lister[Any]: ...

    def when_reached(self, revision: int) -> Awaitable[object]: ...


class Behind(NamedTuple):
    """A cache, and the revision that it has not reached."""

    source: Source
    revision: int


List = Callable[[AnyResource, str], Awaitable[Sequence[ReadOnlyTree]]]
"""Lists the metadata of the server's most recent objects in a namespace."""


def ignore_write(_: Write) -> None:
    """Records nothing."""


class Writes(Struct):
    """For one key: the executor reports each write and its outcome."""

    at: float
    """When the key was last reconciled."""
    revisions: dict[AnyResource, int] = field(default_factory=dict)
    deletions: dict[tuple[AnyResource, Key], str] = field(default_factory=dict)
    unknown: set[AnyResource] = field(default_factory=set)
    """Resources with a write of unknown outcome."""
    observe: Callable[[Write], None] = ignore_write
    """Called with each write that succeeds."""

    def note_write(self, resource: AnyResource, answer: ReadOnlyTree) -> None:
        self.note_revision(resource, int(meta.resource_version(answer)))

    def note_deletion(self, resource: AnyResource, ref: ObjectRef, answer: ReadOnlyTree | None) -> None:
        """`answer` is None after NotFound."""
        if answer is not None and meta.resource_version(answer):
            self.note_write(resource, answer)
        else:
            self.deletions[resource, ref.key] = ref.uid

    def note_unknown(self, resource: AnyResource) -> None:
        self.unknown.add(resource)

    def note_revision(self, resource: AnyResource, revision: int) -> None:
        self.revisions[resource] = max(revision, self.revisions.get(resource, 0))


class OwnWrites:
    """Of one controller. Writes of resources without a source are not waited for: nothing is decided from them."""

    def __init__(self, sources: Mapping[AnyResource, Source], list_: List, clock: Clock) -> None:
        self._sources = sources
        self._list = list_
        self._clock = clock
        self._writes: dict[Key, Writes] = {}

    def of(self, key: Key) -> Writes:
        writes = self._writes.setdefault(key, Writes(at=0.0))
        writes.at = self._clock.monotonic()
        return writes

    async def resolve(self, key: Key) -> None:
        """Read from the server what the caches must show after a write of unknown outcome. Raises the server's errors."""
        writes = self._writes.get(key)
        if writes is None:
            return
        for resource in sorted(writes.unknown, key=str):
            if resource in self._sources:
                self._expect(writes, resource, key.namespace, await self._list(resource, key.namespace))
            writes.unknown.discard(resource)

    def pending_writes(self, key: Key) -> Sequence[Behind]:
        """Return the writes to wait for before the caches are current for this key; those seen are dropped."""
        writes = self._writes.get(key)
        if writes is None:
            return ()
        behind = [] if self._is_expired(writes) else [*self._pending_writes(writes)]
        if not behind:
            del self._writes[key]
        return behind

    async def wait(self, key: Key) -> None:
        """Wait until the caches show the key's present writes, or another history."""
        for source, revision in self.pending_writes(key):
            await source.when_reached(revision)
        if key in self._writes:
            self._writes[key].revisions.clear()

    def _expect(
        self, writes: Writes, resource: AnyResource, namespace: str, listed_objects: Sequence[ReadOnlyTree]
    ) -> None:
        """The list's own revision is not waited for: the resource may have no change at it."""
        there = {meta.uid(obj) for obj in listed_objects}
        for obj in listed_objects:
            writes.note_write(resource, obj)
        lister = self._sources[resource].lister
        for view in lister.in_namespace(namespace) if namespace else lister.all():
            tree = resource.tree(view)
            if meta.uid(tree) not in there:
                writes.deletions[resource, Key.of(tree)] = meta.uid(tree)

    def _is_expired(self, writes: Writes) -> bool:
        return self._clock.monotonic() - writes.at >= EXPIRY_SECONDS

    def _pending_writes(self, writes: Writes) -> Iterator[Behind]:
        for resource, revision in writes.revisions.items():
            source = self._sources.get(resource)
            if source is not None and source.revision < revision:
                yield Behind(source, revision)
        for (resource, key), uid in writes.deletions.items():
            source = self._sources.get(resource)
            if source is not None and self._cache_shows(source, resource, key, uid):
                yield Behind(source, source.revision + 1)

    def _cache_shows(self, source: Source, resource: AnyResource, key: Key, uid: str) -> bool:
        """Whether the cache shows the object without its deletion."""
        view = source.lister.get(*key)
        if view is None:
            return False
        tree = resource.tree(view)
        return meta.uid(tree) == uid and not meta.is_deleting(tree)
