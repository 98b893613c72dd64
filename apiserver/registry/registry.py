"""Access to objects: a `Backend` reads and stores objects of all resources; a `Registry` is a Backend for the verbs.

A Registry adds the kinds, admission and allocators. `parts/registry.py` creates it.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from mockube.apimachinery import status
from mockube.apimachinery.errors import DisplayedValue, FieldError
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.schema.model import Schemas
from mockube.apimachinery.status import InternalError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import AlwaysAllow, Authorization
from mockube.apiserver.event_loop import LARGE, Worker
from mockube.apiserver.kinds.api_resource import GroupVersion, Resource
from mockube.apiserver.kinds.built_in_kinds import Conversions
from mockube.apiserver.kinds.kind import Conversion
from mockube.apiserver.kinds.strategy import DEFAULT, Strategy, StrategyContext
from mockube.apiserver.memory_limit import MemoryLimit
from mockube.apiserver.patch.apply import FieldManager
from mockube.apiserver.schema.decode import Decoder
from mockube.apiserver.storage.journal import Author, Journal
from mockube.apiserver.storage.lease_manager import LeaseManager
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import MAX_REASON, Layout, StoredObject
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.component_base.clock import Clock
from mockube.component_base.local_ports import LocalPorts
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.kv import (
    HEAD,
    KV,
    NO_LEASE,
    Compare,
    KeyValue,
    LeaseId,
    Operation,
    Put,
    Range,
    Revision,
    Txn,
    TxnResult,
)

from .request_context import AdmissionAttributes, ListResult, ObjectResult, RequestContext
from .revisions import at_revision

_R = TypeVar("_R")

DECODED_BYTES: Final = 8 << 20
"""The size of all bodies, and of the objects that they change, that are decoded at a time: two of the largest."""
MAX_WARNINGS: Final = 10
"""The maximum number of objects that the warnings of one list name."""

WRONG_TYPE_ERRORS: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
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
    """The objects of all resources, in the store and in the watch cache: enough for code that only reads objects."""

    kv: KV
    layout: Layout
    watch_cache: WatchCache
    clock: Clock
    random: Random
    rows: Mapping[GroupResource, Resource]
    """The rows of the built-in resources, each in its storage version."""
    gates: FeatureGates = field(default_factory=FeatureGates)
    """The minor release that the server has, and its feature gates."""
    worker: Worker = field(default_factory=Worker)
    journal: Journal = field(default_factory=Journal)
    local_ports: LocalPorts = field(default_factory=dict)
    resource_caches: dict[GroupResource, ResourceCache] = field(default_factory=dict)
    """By built-in resource; added at the first read."""
    moved_ports: dict[int, int] = field(default_factory=dict)
    """The ports of the simulated kubelets in this process, by those of the process of which it is a fork."""

    def is_before(self, minor: str) -> bool:
        """Return whether the server's minor release is older than another."""
        return self.gates.is_before(minor)

    def run(self, context: RequestContext, work: Callable[..., _R], *arguments: object) -> Awaitable[_R]:
        """Run work that is no stage of a write: on the event loop, or by the worker if the request is large."""
        return self.worker.run(context.work.size, work, *arguments)

    def stored_row(self, resource: Resource) -> Resource:
        """Return the row of the version in which objects of a resource are stored."""
        group, version = resource.storage_version or resource.group_version
        if (group, version) == resource.group_version:
            return resource
        return self.rows[GroupResource(group, resource.name)]

    def row(self, name: tuple[str, str, str]) -> Resource:
        """Return the row of a resource by its group, version and name; it need not be served."""
        group, _, resource = name
        return self.rows[GroupResource(group, resource)]

    def admitted_row(self, resource: Resource) -> Resource:
        """Return the row of the version in which objects are admitted and validated: custom ones in that of the request."""
        return resource if resource.custom else self.stored_row(resource)

    def find_cached(self, resource: GroupResource, namespace: str, name: str) -> StoredObject | None:
        """Return an object from the watch cache, which must be fresh; None if it does not exist."""
        row = self.rows.get(resource)
        if row is None:  # its definition was deleted meanwhile
            return None
        try:
            key = self.layout.object(row, namespace, name)
        except status.BadRequest:  # no object can have such a name
            return None
        return self.resource_cache(resource).objects.get(key)

    def list_cached(self, resource: GroupResource, namespace: str = "") -> Sequence[StoredObject]:
        """Return every object of a resource, or those in a namespace, from the watch cache."""
        row = self.rows.get(resource)
        if row is None:  # its definition was deleted meanwhile
            return ()
        cache = self.resource_cache(resource)
        return cache.select(self.layout.scope(row, namespace)) if cache.objects else ()

    def resource_cache(self, resource: GroupResource) -> ResourceCache:
        """Return the resource cache of a resource; it is looked up once, because admission uses it at every write."""
        cache = self.resource_caches.get(resource)
        if cache is None:
            folder = self.layout.prefix(self.rows[resource])
            cache = self.resource_caches[resource] = self.watch_cache.resource_cache(folder)
        return cache

    async def find(
        self, resource: Resource, namespace: str, name: str, *, revision: Revision = HEAD
    ) -> StoredObject | None:
        """Return an object from the store, as it was at a revision; None if it does not exist there."""
        request = Range(key=self.layout.object(resource, namespace, name), revision=revision)
        reading = self.kv.range(request)
        kvs = (await (reading if revision == HEAD else at_revision(reading))).kvs
        return self._read(self.layout.prefix(resource), kvs[0]) if kvs else None

    def _read(self, prefix: bytes, kv: KeyValue) -> StoredObject:
        """Return the object of a value; a value that the watch cache has read is not checked again."""
        cached_object = self.watch_cache.at_revision(prefix, kv.key, kv.mod_revision)
        if cached_object is not None:
            return cached_object
        try:
            return self.watch_cache.values.read(prefix, kv)
        except Exception as error:
            raise CorruptObject(kv.key, kv.mod_revision, error) from error

    def commit(self, transaction: Txn, author: Author) -> Awaitable[TxnResult]:
        """Execute a transaction that writes; the journal notes its author. Only a restore, a Rewind and compactions write without it."""
        return self.journal.commit(self.kv, transaction, author)

    def put(self, key: bytes, text: bytes, *, lease: LeaseId = NO_LEASE) -> Put:
        """Return the operation that stores canonical text."""
        self.watch_cache.values.trust(key, text)
        return Put(key=key, value=text, lease=lease)

    def readable(self, resource: Resource, kvs: Iterable[KeyValue]) -> Iterator[StoredObject]:
        """Yield the objects of values, without those that cannot be read."""
        prefix = self.layout.prefix(resource)
        for kv in kvs:
            try:
                yield self._read(prefix, kv)
            except CorruptObject as error:
                self.watch_cache.unreadable.report(prefix, kv.key, kv.mod_revision, error)

    def warn_unreadable(self, context: RequestContext, prefix: bytes) -> Sequence[bytes]:
        """Warn of the objects below a prefix that a list omits; return their keys."""
        keys = self.watch_cache.unreadable.below(prefix) if self.watch_cache.unreadable else ()
        for key in keys[:MAX_WARNINGS]:
            context.report.warn(
                f"{key.decode(errors='replace')} cannot be read and is omitted: delete it by name"
            )
        if len(keys) > MAX_WARNINGS:
            context.report.warn(f"{len(keys) - MAX_WARNINGS} more objects cannot be read and are left out")
        return keys

    async def get(
        self, resource: Resource, namespace: str, name: str, *, revision: Revision = HEAD
    ) -> StoredObject:
        stored = await self.find(resource, namespace, name, revision=revision)
        if stored is None:
            raise status.not_found(resource.group_resource, name)
        return stored


class Rules(Protocol):
    """The defaults, validation and warnings of kinds, besides their schemas."""

    no_version: int | DisplayedValue
    """The value that messages show if an update has no resourceVersion."""

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        """Set defaults in place, in a tree that is not shared yet."""

    def check_create(self, resource: Resource, tree: Tree) -> Sequence[FieldError]: ...

    def check_update(
        self, resource: Resource, subresource: str, new: Tree, old: Tree
    ) -> Sequence[FieldError]: ...

    def warn_create(self, resource: Resource, tree: Tree) -> Iterable[str]:
        """Return the warnings about a new object that is valid."""

    def warn_update(self, resource: Resource, subresource: str, new: Tree, old: Tree) -> Iterable[str]: ...

    def warn_refused(self, resource: Resource, new: Tree, old: Tree) -> Iterable[str]:
        """Return the warnings that accompany the errors of the update that was checked last."""


class Scheme(Struct, frozen=True, kw_only=True):
    """The schemas, decoders, rules, strategies and conversions of all kinds that are served."""

    schemas: Schemas
    decoder: Decoder
    rules: Rules
    strategies: Mapping[GroupResource, Strategy]
    version_strategies: Mapping[tuple[GroupVersion, str], Strategy]
    """The strategies of custom resources, whose versions may have different subresources."""
    conversions: Conversions = field(default_factory=dict)
    prepare: Callable[[Worker, Resource], Awaitable[None]] | None = None
    """Compiles the functions of a custom resource before its first object is handled."""
    field_managers: dict[tuple[Resource, str], FieldManager] = field(default_factory=dict)
    """By resource and subresource; created at the first write."""

    def strategy(self, resource: Resource) -> Strategy:
        if resource.custom:
            return self.version_strategies.get((resource.group_version, resource.name), DEFAULT)
        return self.strategies.get(resource.group_resource, DEFAULT)

    def conversion(self, resource: Resource) -> Conversion | None:
        return self.conversions.get((resource.group_version, resource.name))


class Allocations(Struct, frozen=True, kw_only=True):
    """The comparisons and operations of a write's transaction that allocate and release addresses and ports."""

    compare: Sequence[Compare] = ()
    then: Sequence[Operation] = ()


NO_ALLOCATIONS = Allocations()


class Allocator(Protocol):
    """Allocates values that must be unique among the objects of a resource, such as addresses."""

    async def allocate(
        self, backend: Backend, new: Tree | None, old: Tree | None, *, dry_run: bool
    ) -> Allocations:
        """Set the allocated fields of the new object; return the allocations and releases.

        `old` is None at a creation, `new` at a deletion.
        """

    async def release_unreadable(self, backend: Backend, namespace: str, name: str) -> Allocations:
        """Return what releases all allocations of a deleted object that cannot be read."""


class Allocators(Struct, frozen=True, kw_only=True):
    """The allocators of resources, and the leases of objects with a time to live."""

    by_resource: Mapping[GroupResource, Allocator] = field(default_factory=dict)
    lease_managers: Mapping[GroupResource, LeaseManager] = field(default_factory=dict)
    """By resource."""

    def has_allocator(self, resource: Resource) -> bool:
        """Return whether writes of the resource allocate values, for which concurrent requests may compete."""
        return resource.group_resource in self.by_resource

    async def allocate(
        self,
        backend: Backend,
        resource: Resource,
        new: Tree | None,
        old: Tree | None,
        *,
        dry_run: bool = False,
    ) -> Allocations:
        allocator = self.by_resource.get(resource.group_resource)
        return (
            NO_ALLOCATIONS
            if allocator is None
            else await allocator.allocate(backend, new, old, dry_run=dry_run)
        )

    async def release_unreadable(
        self, backend: Backend, resource: Resource, namespace: str, name: str
    ) -> Allocations:
        allocator = self.by_resource.get(resource.group_resource)
        return (
            NO_ALLOCATIONS
            if allocator is None
            else await allocator.release_unreadable(backend, namespace, name)
        )

    async def lease(self, resource: Resource) -> int:
        """Return the lease of the store under which an object of the resource is put."""
        lease_manager = self.lease_managers.get(resource.group_resource)
        return NO_LEASE if lease_manager is None else await lease_manager.lease()


class Admission(Protocol):
    async def mutate(self, registry: "Registry", attributes: AdmissionAttributes) -> None: ...

    async def authorize(self, registry: "Registry", attributes: AdmissionAttributes) -> None:
        """Require what a write needs besides the permission for its request, before its object is validated."""

    async def validate(self, registry: "Registry", attributes: AdmissionAttributes) -> None: ...


class Registry(Backend, frozen=True, kw_only=True):
    """The dependencies of the verbs."""

    scheme: Scheme
    admission: Admission
    allocators: Allocators = field(default_factory=Allocators)
    authorization: Authorization = field(default_factory=partial(Authorization, (AlwaysAllow(),)))
    """Authorizes what a request does besides what its path and method say, such as a creation by an apply."""
    watch_list: bool = True
    """Whether watches may send initial events if their clients request them."""
    memory: MemoryLimit = field(default_factory=partial(MemoryLimit, DECODED_BYTES, minimum=LARGE))
    """The memory for bodies, and for the objects that they change, while they are decoded."""

    def in_words_of_minor(self, kind: GroupKind, field_errors: Sequence[FieldError]) -> Sequence[FieldError]:
        """Return errors with the fields and messages of the server's minor release."""
        if not field_errors or not self.is_before("1.37"):
            return field_errors
        from mockube.apiserver.kinds.minors.wording import in_words_of_36  # noqa: PLC0415 - only older minors need it

        return in_words_of_36(kind, field_errors)

    async def begin(self, context: RequestContext, work: Callable[..., _R], *arguments: object) -> _R:
        """Reserve memory, then return the result of the first work on a body, which is done in a thread if it may take long."""
        if context.work.needs_reservation:
            await context.work.reserve()
        if context.resource.custom and self.scheme.prepare is not None:
            await self.scheme.prepare(self.worker, context.resource)
        result = await self.run(context, work, *arguments)
        # Requests that arrived together pass each stage together: docs/decisions/0022-stages-of-requests.md
        await yield_to_loop()
        return result

    def request(self, context: RequestContext) -> StrategyContext:
        """Return the parts of a request that strategies use."""
        return StrategyContext(user=context.user, now=self.clock.now(), warn=context.report.warn)


Verb: TypeAlias = Callable[[Registry, RequestContext], Awaitable[ObjectResult | ListResult]]
OwnVerbs: TypeAlias = dict[tuple[GroupResource, str], Mapping[str, Verb]]
"""The verbs, by name, of resources and subresources ("" for the resource itself) that have verbs of their own."""
