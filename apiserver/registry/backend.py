"""The objects of all resources: in the store, and as the watch cache shows them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import status
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import InternalError
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.long_work import Worker
from mockube.apiserver.registry.call import Call
from mockube.apiserver.storage.keys import Layout
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored import MAX_REASON, Stored
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.etcd.kv import KV, NO_LEASE, KeyValue, LeaseId, Put, Range

MAX_WARNINGS: Final = 10
"""The maximum number of objects that the warnings of one list name."""

OF_WRONG_TYPES: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""The errors that Python raises for an object with fields of wrong types."""


class CorruptObject(InternalError):
    """The value of a key cannot be read as an object. The message is that of upstream's storage."""

    def __init__(self, key: bytes, revision: int, problem: Exception) -> None:
        error = status.internal_error(
            f"StorageError: corrupt object, Code: 7, Key: {key.decode(errors='replace')}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: {str(problem)[:MAX_REASON]}"
        )
        super().__init__(str(error), error.details)
        self.key = key
        self.revision = revision


class Backend(Struct, frozen=True, kw_only=True):
    """What reads objects needs this alone; the verbs have a `Registry`."""

    kv: KV
    layout: Layout
    watch_cache: WatchCache
    clock: Clock
    random: Random
    rows: Mapping[GroupResource, Resource]
    """The rows of the built-in resources, each in its storage version."""
    worker: Worker = field(default_factory=Worker)
    resource_caches: dict[GroupResource, ResourceCache] = field(default_factory=dict)
    """By built-in resource; added at the first read."""

    def stored_row(self, resource: Resource) -> Resource:
        """Return the row of the version in which objects of a resource are stored."""
        group, version = resource.storage_version or resource.group_version
        if (group, version) == resource.group_version:
            return resource
        return self.rows[GroupResource(group, resource.name)]

    def find_cached(self, resource: GroupResource, namespace: str, name: str) -> Stored | None:
        """Return an object from the watch cache, which must be fresh; None if it does not exist."""
        try:
            key = self.layout.object(self.rows[resource], namespace, name)
        except status.BadRequest:  # no object can have such a name
            return None
        return self.resource_cache(resource).objects.get(key)

    def all_seen(self, resource: GroupResource, namespace: str = "") -> Sequence[Stored]:
        """Return every object of a resource, or those in a namespace, from the watch cache."""
        cache = self.resource_cache(resource)
        return cache.select(self.layout.scope(self.rows[resource], namespace)) if cache.objects else ()

    def resource_cache(self, resource: GroupResource) -> ResourceCache:
        """Return the resource cache of a resource; it is looked up once, because admission uses it at every write."""
        cache = self.resource_caches.get(resource)
        if cache is None:
            folder = self.layout.resource_cache(self.rows[resource])
            cache = self.resource_caches[resource] = self.watch_cache.resource_cache(folder)
        return cache

    async def find(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        """Return an object from the store; None if it does not exist."""
        key = self.layout.object(resource, namespace, name)
        kvs = (await self.kv.range(Range(key=key))).kvs
        return self._read(self.layout.resource_cache(resource), kvs[0]) if kvs else None

    def _read(self, prefix: bytes, kv: KeyValue) -> Stored:
        """Return the object of a value; a value that the watch cache has read is not checked again."""
        cached_object = self.watch_cache.at_revision(prefix, kv.key, kv.mod_revision)
        if cached_object is not None:
            return cached_object
        try:
            return self.watch_cache.read(prefix, kv)
        except Exception as error:
            raise CorruptObject(kv.key, kv.mod_revision, error) from error

    def put(self, key: bytes, text: bytes, *, lease: LeaseId = NO_LEASE) -> Put:
        """Return the operation that stores canonical text."""
        self.watch_cache.trust(key, text)
        return Put(key=key, value=text, lease=lease)

    def readable(self, resource: Resource, kvs: Iterable[KeyValue]) -> Iterator[Stored]:
        """Yield the objects of values, without those that cannot be read."""
        prefix = self.layout.resource_cache(resource)
        for kv in kvs:
            try:
                yield self._read(prefix, kv)
            except CorruptObject as error:
                self.watch_cache.unreadable.report(prefix, kv.key, kv.mod_revision, error)

    def warn_unreadable(self, call: Call, prefix: bytes) -> Sequence[bytes]:
        """Warn of the objects below a prefix that a list omits; return their keys."""
        keys = self.watch_cache.unreadable.below(prefix) if self.watch_cache.unreadable else ()
        for key in keys[:MAX_WARNINGS]:
            call.warn(f"{key.decode(errors='replace')} cannot be read and is omitted: delete it by name")
        if len(keys) > MAX_WARNINGS:
            call.warn(f"{len(keys) - MAX_WARNINGS} more objects cannot be read and are left out")
        return keys

    async def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        stored = await self.find(resource, namespace, name)
        if stored is None:
            raise status.not_found(resource.group_resource, name)
        return stored
