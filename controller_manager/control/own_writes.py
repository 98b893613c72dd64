"""Track the writes of a controller's keys until its caches contain them.

A plan from caches without the objects that the previous plan created would create them again. So the revision of the last
write of each resource is stored with the key, and the key waits until the informers have reached it. A deletion whose
response has no revision is recognized by the uid of the deleted object.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.revisions import EXPIRY_SECONDS
from mockube.client.cache.store import Lister
from mockube.client.resources import AnyResource, Key
from mockube.component_base.clock import Clock

from .actions import CompletedWrite, ObjectRef


class RevisionSource(Protocol):
    """The methods of an informer that this module uses."""

    @property
    def revision(self) -> int: ...

    @property
    def lister(self) -> Lister[Any]: ...

    def wait_for_revision(self, revision: int) -> Awaitable[object]: ...


class PendingWrite(NamedTuple):
    """A cache, and the revision of a write that it has not reached."""

    source: RevisionSource
    revision: int


ListUncached = Callable[[AnyResource, str], Awaitable[Sequence[ReadOnlyTree]]]
"""A function that returns the metadata of the objects in a namespace as the server lists them now."""


class KeyWrites(Struct):
    """The writes of one key, which the executor notes."""

    reconciled_at: float
    """The monotonic time of the last reconciliation of the key."""
    revisions: dict[AnyResource, int] = field(default_factory=dict)
    deletions: dict[tuple[AnyResource, Key], str] = field(default_factory=dict)
    unknown: set[AnyResource] = field(default_factory=set)
    """The resources with a write of unknown outcome."""
    completed: list[CompletedWrite] = field(default_factory=list)
    """The writes of the present plan that succeeded."""

    def begin_plan(self) -> Sequence[CompletedWrite]:
        """Return the writes of the plan that begins: a list to which its writes are added."""
        self.completed = []
        return self.completed

    def note_write(self, resource: AnyResource, response: ReadOnlyTree) -> None:
        self.note_revision(resource, int(meta.resource_version(response)))

    def note_deletion(self, resource: AnyResource, ref: ObjectRef, response: ReadOnlyTree | None) -> None:
        """Note a deletion; `response` is the response, or None after NotFound."""
        if response is not None and meta.resource_version(response):
            self.note_write(resource, response)
        else:
            self.deletions[resource, ref.key] = ref.uid

    def note_unknown(self, resource: AnyResource) -> None:
        self.unknown.add(resource)

    def note_revision(self, resource: AnyResource, revision: int) -> None:
        self.revisions[resource] = max(revision, self.revisions.get(resource, 0))


class OwnWrites:
    """The writes of one controller, by key. Keys do not wait for writes of resources without an informer."""

    def __init__(
        self, sources: Mapping[AnyResource, RevisionSource], list_: ListUncached, clock: Clock
    ) -> None:
        self._sources = sources
        self._list = list_
        self._clock = clock
        self._writes: dict[Key, KeyWrites] = {}

    def of(self, key: Key) -> KeyWrites:
        writes = self._writes.setdefault(key, KeyWrites(reconciled_at=0.0))
        writes.reconciled_at = self._clock.monotonic()
        return writes

    async def resolve(self, key: Key) -> None:
        """List the resources with a write of unknown outcome, and note what the caches must contain. Raises `ApiError`."""
        writes = self._writes.get(key)
        if writes is None:
            return
        for resource in sorted(writes.unknown, key=str):
            if resource in self._sources:
                self._note_listed(writes, resource, key.namespace, await self._list(resource, key.namespace))
            writes.unknown.discard(resource)

    def pending_writes(self, key: Key) -> Sequence[PendingWrite]:
        """Return the writes of a key that the caches do not contain yet. If there are none, all are forgotten."""
        writes = self._writes.get(key)
        if writes is None:
            return ()
        pending = [] if self._is_expired(writes) else [*self._pending_writes(writes)]
        if not pending:
            del self._writes[key]
        return pending

    async def wait(self, key: Key) -> None:
        """Wait until the caches contain the writes of a key, or the server has another history."""
        for source, revision in self.pending_writes(key):
            await source.wait_for_revision(revision)
        if key in self._writes:
            self._writes[key].revisions.clear()

    def _note_listed(
        self, writes: KeyWrites, resource: AnyResource, namespace: str, listed_objects: Sequence[ReadOnlyTree]
    ) -> None:
        """Note the revisions of listed objects, and the deletion of others.

        The revision of the list is not noted: the resource may have no change at it.
        """
        listed_uids = {meta.uid(obj) for obj in listed_objects}
        for obj in listed_objects:
            writes.note_write(resource, obj)
        lister = self._sources[resource].lister
        for view in lister.in_namespace(namespace) if namespace else lister.all():
            tree = resource.tree(view)
            if meta.uid(tree) not in listed_uids:
                writes.deletions[resource, Key.of(tree)] = meta.uid(tree)

    def _is_expired(self, writes: KeyWrites) -> bool:
        return self._clock.monotonic() - writes.reconciled_at >= EXPIRY_SECONDS

    def _pending_writes(self, writes: KeyWrites) -> Iterator[PendingWrite]:
        for resource, revision in writes.revisions.items():
            source = self._sources.get(resource)
            if source is not None and source.revision < revision:
                yield PendingWrite(source, revision)
        for (resource, key), uid in writes.deletions.items():
            source = self._sources.get(resource)
            if source is not None and self._shows_as_existing(source, resource, key, uid):
                yield PendingWrite(source, source.revision + 1)

    def _shows_as_existing(self, source: RevisionSource, resource: AnyResource, key: Key, uid: str) -> bool:
        """Return whether the cache contains the object without a deletion timestamp."""
        view = source.lister.get(*key)
        if view is None:
            return False
        tree = resource.tree(view)
        return meta.uid(tree) == uid and not meta.is_deleting(tree)
